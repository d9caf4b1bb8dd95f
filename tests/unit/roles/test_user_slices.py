from pathlib import Path

from tests.unit.roles.loading import load_module

module = load_module("roles/login_limits/library/user_slices.py")

WISHES = {"memory": "25%", "swap": "0", "processes": 4096, "cpus": 0.0}


def test_everybody_is_limited_and_exempt_accounts_are_not() -> None:
    files = module.drop_ins(WISHES, {"admin": 990, "root": 0})
    assert sorted(files) == [
        "user-.slice.d/50-deploy.conf",
        "user-0.slice.d/50-deploy.conf",
        "user-990.slice.d/50-deploy.conf",
    ]
    assert "MemoryMax=25%\nMemorySwapMax=0\nTasksMax=4096\n" in files["user-.slice.d/50-deploy.conf"]
    assert "MemoryMax=infinity" in files["user-990.slice.d/50-deploy.conf"]


def test_cpus_are_a_quota_in_percent_of_one() -> None:
    assert "CPUQuota" not in module.limits(WISHES)
    assert "CPUQuota=250%\n" in module.limits({**WISHES, "cpus": 2.5})


def test_drop_ins_of_earlier_runs_are_found_and_others_are_not(tmp_path: Path) -> None:
    for name in (
        "user-.slice.d/50-deploy.conf",
        "user-990.slice.d/50-deploy.conf",
        "user-7.slice.d/own.conf",
    ):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("text")
    assert sorted(module.present(tmp_path)) == [
        "user-.slice.d/50-deploy.conf",
        "user-990.slice.d/50-deploy.conf",
    ]
