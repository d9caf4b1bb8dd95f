"""System, hardware, driver, and a Slurm that is there already."""

import os
from pathlib import Path

import pytest

from deploy.site.inventory import FACTS
from tests.unit.host_checks.checks import part, said

system, hardware, driver, slurm = (
    part(name) for name in ("operating_system", "hardware", "nvidia_driver", "other_slurm")
)

SUPPORTED = {"Debian": ["12", "13"], "Ubuntu": ["22.04"]}


def write(root: Path, path: str, text: str = "") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def facts(name: str, version: str, manager: str = "systemd") -> dict[str, str]:
    return {"distribution": name, "distribution_version": version, "service_mgr": manager}


@pytest.mark.parametrize(
    ("name", "version", "fits"),
    [
        ("Debian", "12", True),
        ("Debian", "13.7", True),
        ("Debian", "1", False),
        ("Debian", "11.9", False),
        ("Debian", "120", False),
        ("Ubuntu", "22.04", True),
        ("Ubuntu", "22.10", False),
        ("Rocky", "9.4", False),
        ("Debian", "", False),
    ],
)
def test_supported_systems(name: str, version: str, fits: bool) -> None:  # noqa: FBT001
    found = said(system.check_system(facts(name, version), SUPPORTED))
    assert found == ([] if fits else [("error", "unsupported-system")])


def test_systemd_runs_the_services() -> None:
    assert said(system.check_system(facts("Debian", "12", "runit"), SUPPORTED)) == [("error", "no-systemd")]


def test_what_templates_may_mention_are_the_facts_that_a_run_has(tmp_path: Path) -> None:
    write(tmp_path, "proc/1/comm", "init\n")
    write(tmp_path, "proc/meminfo")
    of_packages = {"deb_packages", "deb_source_pending"}
    assert set(FACTS) - of_packages == system.facts(tmp_path, None, None).keys()


def test_facts(tmp_path: Path) -> None:
    write(tmp_path, "proc/1/comm", "runit\n")
    write(tmp_path, "proc/meminfo", "MemTotal:        2013184 kB\n")
    assert system.facts(tmp_path, None, None) == {
        "architecture": os.uname().machine,
        "distribution": "an unknown system",
        "distribution_version": "",
        "distribution_major_version": "",
        "memtotal_mb": 1966,
        "pkg_mgr": "unknown",
        "service_mgr": "runit",
    }
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    write(tmp_path, "usr/bin/apt-get")
    assert system.facts(tmp_path, "Ubuntu", "22.04") == {
        "architecture": os.uname().machine,
        "distribution": "Ubuntu",
        "distribution_version": "22.04",
        "distribution_major_version": "22",
        "memtotal_mb": 1966,
        "pkg_mgr": "apt",
        "service_mgr": "systemd",
    }
    unreleased = system.facts(tmp_path, "Debian", "forky/sid")
    assert (unreleased["distribution_version"], unreleased["distribution_major_version"]) == ("14", "14")


def test_hardware_below_its_contract() -> None:
    contract = {"cpus": 4, "gpus": [{"type": "a100", "count": 2}]}
    assert list(hardware.judge(contract, {"cpus": 4, "gpus": [{"type": "gpu", "count": 2}]})) == []
    found = list(hardware.judge(contract, {"cpus": 2, "gpus": [{"type": "gpu", "count": 1}]}))
    assert said(found) == [("error", "hardware-below-contract")] * 2
    assert "nvidia-smi -L" in found[1]["hint"]


@pytest.mark.parametrize(
    ("kinds", "is_wrong"),
    [
        ([{"type": "a100", "count": 2}, {"type": "l40s", "count": 1}], True),
        (
            [
                {"type": "a100", "count": 2, "files": "/dev/nvidia[0,2]"},
                {"type": "l40s", "count": 1, "files": "/dev/nvidia1"},
            ],
            False,
        ),
        # A site's own names, of which the driver knows nothing.
        ([{"type": "big", "count": 2}, {"type": "small", "count": 1}], False),
    ],
)
def test_types_that_are_taken_for_those_of_other_device_files(
    kinds: list[dict[str, object]], *, is_wrong: bool
) -> None:
    shown = [
        {"type": "a100", "count": 2, "files": "/dev/nvidia[0,2]"},
        {"type": "l40s", "count": 1, "files": "/dev/nvidia1"},
    ]
    found = list(hardware.mixed_up(kinds, shown))
    assert said(found) == [("warning", "gpu-types-mixed-up")] * is_wrong
    if is_wrong:
        assert "a100 is /dev/nvidia[0,2], l40s is /dev/nvidia1" in found[0]["message"]
        entries = (
            "{type: a100, count: 2, files: '/dev/nvidia[0,2]'}",
            "{type: l40s, count: 1, files: '/dev/nvidia1'}",
        )
        assert f"gpus: [{', '.join(entries)}]" in found[0]["hint"]


@pytest.mark.parametrize(
    ("types", "models", "is_wrong"),
    [
        (["rtx3090"], ["NVIDIA GeForce RTX 3090"], True),
        (["rtx_3090"], ["NVIDIA GeForce RTX 3090"], False),
        (["RTX_3090"], ["NVIDIA GeForce RTX 3090"], False),
        (["a100", "l40s"], ["NVIDIA A100-SXM4-80GB", "NVIDIA L40S"], False),
        (["a100", "rtx6000"], ["NVIDIA A100-SXM4-80GB", "NVIDIA RTX 6000 Ada Generation"], True),
        # Nothing is known without a driver; where Slurm is told the files, names are the site's own.
        (["rtx3090"], [], False),
        ([], ["NVIDIA GeForce RTX 3090"], False),
    ],
)
def test_types_by_which_slurm_finds_no_gpu(types: list[str], models: list[str], *, is_wrong: bool) -> None:
    found = list(hardware.judge_names(types, models))
    assert said(found) == [("error", "gpu-type-not-found")] * is_wrong
    if is_wrong:
        assert "rtx" in found[0]["message"]
        assert "a100," not in found[0]["message"]
        assert f"type: {'rtx_3090' if len(models) == 1 else 'rtx_6000'}" in found[0]["hint"]


def test_gpus_without_a_driver() -> None:
    contract = {"gpus": [{"type": "a100", "count": 2}]}
    assert said(hardware.judge(contract, {"cpus": 4})) == [("error", "gpu-driver-missing")]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\nGCC version:  12.2.0\n",
            "535.183.01",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n",
            "550.54.14",
        ),
        ("something else\n", ""),
    ],
)
def test_running_driver(tmp_path: Path, text: str, version: str) -> None:
    assert driver.running_version(tmp_path) == ""
    write(tmp_path, "proc/driver/nvidia/version", text)
    assert driver.running_version(tmp_path) == version


def test_library_of_the_driver(tmp_path: Path) -> None:
    assert driver.library_version(tmp_path) == ""
    library = write(tmp_path, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.14")
    library.with_name("libnvidia-ml.so.1").symlink_to(library.name)
    assert driver.library_version(tmp_path) == "550.54.14"


@pytest.mark.parametrize(
    ("library", "module", "expected"),
    [
        ("550.1", "550.1", []),
        ("", "", []),
        ("550.1", "", []),
        ("555.2", "555.2", ["its library is 555.2"]),
        ("", "555.2", ["555.2 is installed for kernel 6.1"]),
    ],
)
def test_driver_in_step(library: str, module: str, expected: list[str]) -> None:
    found = list(driver.check_driver("550.1", library, module, "6.1"))
    assert said(found) == [("error", "gpu-driver-not-in-step")] * len(expected)
    assert all(words in finding["message"] for words, finding in zip(expected, found, strict=True))
    assert list(driver.check_driver("", library, module, "6.1")) == []


def test_slurm_of_the_distribution(tmp_path: Path) -> None:
    write(tmp_path, "usr/sbin/slurmd")
    write(tmp_path, "var/lib/dpkg/info/slurmd.list")
    enabled = write(tmp_path, "etc/systemd/system/x").with_name("slurmctld.service")
    enabled.symlink_to("/dev/null")
    assert list(slurm.check_installation(tmp_path)) == []


@pytest.mark.parametrize("place", ["status", "updates/0001"])
def test_a_package_that_dpkg_was_killed_over_is_no_other_slurm(tmp_path: Path, place: str) -> None:
    write(tmp_path, "usr/sbin/slurmd")
    write(tmp_path, f"var/lib/dpkg/{place}", "Package: bash\n\nPackage: slurmd\nStatus: half-installed\n")
    assert list(slurm.check_installation(tmp_path)) == []


def test_a_daemon_by_schedmds_packaging_is_no_other_slurm(tmp_path: Path) -> None:
    write(tmp_path, "usr/sbin/slurmd")
    write(tmp_path, "var/lib/dpkg/info/slurm-smd-slurmd.list")
    assert list(slurm.check_installation(tmp_path)) == []


@pytest.mark.parametrize(
    ("there", "is_built", "expected"),
    [
        ("slurm-client.md5sums", False, ""),
        ("slurm-smd-client.md5sums", True, ""),
        ("slurm-client.list", True, ""),  # removed, and its configuration kept
        ("slurm-client.md5sums", True, "set slurm_packages_source: distribution"),
        ("slurm-smd-client.md5sums", False, "set slurm_packages_source: schedmd"),
    ],
)
def test_packages_of_the_other_source_are_not_replaced(
    tmp_path: Path, there: str, *, is_built: bool, expected: str
) -> None:
    write(tmp_path, f"var/lib/dpkg/info/{there}")
    found = list(slurm.check_source(tmp_path, is_built=is_built))
    assert [finding["hint"].partition(";")[0] for finding in found] == ([expected] if expected else [])


@pytest.mark.parametrize(
    "path",
    [
        "usr/local/sbin/slurmctld",
        "opt/slurm/sbin/slurmd",
        "opt/slurm/23.02/sbin/slurmd",
        "usr/sbin/slurmdbd",
        "etc/systemd/system/slurmd.service",
    ],
)
def test_slurm_from_elsewhere(tmp_path: Path, path: str) -> None:
    write(tmp_path, path)
    (finding,) = slurm.check_installation(tmp_path)
    assert said([finding]) == [("error", "other-slurm-installed")]
    assert finding["message"].startswith(f"/{path} is not from")


OTHER = "# Theirs\nClusterName=other\nSlurmctldHost=boss(10.1.1.1)\nSlurmctldHost=vice\n"


def test_part_of_another_cluster(tmp_path: Path) -> None:
    assert list(slurm.check_membership(tmp_path, "ours", ["ctl1"])) == []
    write(tmp_path, "etc/slurm/slurm.conf", OTHER)
    (finding,) = slurm.check_membership(tmp_path, "ours", ["ctl1"])
    assert said([finding]) == [("error", "belongs-to-other-cluster")]
    assert "cluster other with the controller boss, vice" in finding["message"]
    assert list(slurm.check_membership(tmp_path, "other", ["ctl1"])) == []


def test_whose_a_machine_is(tmp_path: Path) -> None:
    assert list(slurm.memberships(tmp_path)) == []
    write(tmp_path, "run/slurm/conf/slurm.conf", OTHER)
    (found,) = slurm.memberships(tmp_path)
    assert found == {
        "file": "/run/slurm/conf/slurm.conf",
        "name": "other",
        "controllers": {"boss": "10.1.1.1", "vice": ""},
    }


def test_a_renamed_cluster_keeps_its_controllers(tmp_path: Path) -> None:
    write(tmp_path, "run/slurm/conf/slurm.conf", OTHER)
    assert list(slurm.check_membership(tmp_path, "new", ["vice"])) == []


def test_state_of_a_cluster_with_another_name(tmp_path: Path) -> None:
    assert list(slurm.check_state(tmp_path, "ours", "/var/spool/slurmctld")) == []
    assert not slurm.has_state(tmp_path, "/var/spool/slurmctld")
    write(tmp_path, "var/spool/slurmctld/clustername", "other|39187F7F0101")
    assert said(slurm.check_state(tmp_path, "ours", "/var/spool/slurmctld")) == [
        ("error", "cluster-name-differs")
    ]
    assert list(slurm.check_state(tmp_path, "other", "/var/spool/slurmctld")) == []
    assert slurm.has_state(tmp_path, "/var/spool/slurmctld")


@pytest.mark.parametrize(
    ("files", "is_wanted", "expected"),
    [
        ([], True, True),
        ([], False, False),
        (["usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.1"], True, False),
        (
            ["usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.1", "etc/apt/preferences.d/deploy-nvidia-driver"],
            True,
            True,
        ),
    ],
)
def test_a_driver_is_left_to_its_role_where_that_will_bring_it(
    tmp_path: Path, *, files: list[str], is_wanted: bool, expected: bool
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert driver.is_managed(tmp_path, is_wanted=is_wanted) is expected


@pytest.mark.parametrize(
    ("profiles", "is_refused"),
    [
        ("lsb_release (enforce)\nrsyslogd (enforce)\n", True),
        ("/usr/sbin/rsyslogd (enforce)\n", True),
        ("rsyslogd (complain)\nnot-rsyslogd (enforce)\nrsyslogd//child (enforce)\n", False),
        ("", False),
    ],
)
def test_central_logs_need_an_rsyslogd_that_is_not_confined(profiles: str, *, is_refused: bool) -> None:
    found = [*system.check_confined_logs(profiles)]
    assert [finding["reference"] for finding in found] == ["rsyslog-confined"] * is_refused
