from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

mig = load_module("roles/mig/files/deploy_mig.py")

TABLE = """\
+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 1g.5gb          19       13          6:1     |
+-------------------------------------------------------+
|   0  MIG 3g.20gb          9        2          0:4     |
+-------------------------------------------------------+
|   1  MIG 7g.40gb          0        0          0:8     |
+-------------------------------------------------------+
"""
RECORDED = Path(__file__).parent / "recorded/h200"
H200 = mig.parse_profiles(
    *((RECORDED / f"mig-{name}.txt").read_text(encoding="utf-8") for name in ("profiles", "placements"))
)
ON, OFF = ("Enabled", "Enabled"), ("Disabled", "Disabled")


def test_instances() -> None:
    assert mig.parse_instances(TABLE) == {0: ["1g.5gb", "3g.20gb"], 1: ["7g.40gb"]}
    assert mig.parse_instances("No GPU instances found: Not Found\n") == {}


def test_modes() -> None:
    text = "0, Enabled, Enabled\n1, [N/A], [N/A]\n"
    assert mig.parse_modes(text) == {0: ON, 1: ("[N/A]", "[N/A]")}


def test_a_layout_without_numbers_is_for_all_gpus_and_large_instances_come_first() -> None:
    layout = [{"devices": ["1g.10gb", "3g.40gb", "2g.20gb"]}, {"gpus": [1], "devices": ["7g.80gb"]}]
    assert mig.wanted(layout, [0, 1]) == {0: ["3g.40gb", "2g.20gb", "1g.10gb"], 1: ["7g.80gb"]}


@pytest.mark.parametrize(
    ("mode", "have", "want", "expected"),
    [
        (ON, ["1g.5gb"], ["1g.5gb"], ""),
        (OFF, [], [], ""),
        (("[N/A]", "[N/A]"), [], [], ""),
        (ON, [], ["1g.5gb"], "GPU 0: nothing instead of 1g.5gb"),
        (ON, ["7g.40gb"], ["3g.20gb", "3g.20gb"], "GPU 0: 7g.40gb instead of 3g.20gb 3g.20gb"),
        (OFF, [], ["1g.5gb"], "GPU 0: MIG is off"),
        (("Disabled", "Enabled"), [], ["1g.5gb"], "GPU 0: MIG waits for a reboot"),
        (ON, ["1g.5gb"], [], "GPU 0: MIG is on, and the layout does not name it"),
        (("Enabled", "Disabled"), [], [], "GPU 0: MIG waits for a reboot"),
        (("Enabled", "Disabled"), [], ["1g.5gb"], "GPU 0: MIG is off"),
        (("Disabled", "Enabled"), [], [], "GPU 0: MIG is on, and the layout does not name it"),
        (("[N/A]", "[N/A]"), [], ["1g.5gb"], "GPU 0: it cannot be divided"),
    ],
)
def test_what_differs(mode: tuple[str, str], have: list[str], want: list[str], expected: str) -> None:
    found = mig.differences({0: want} if want else {}, {0: mode}, {0: have} if have else {})
    assert found == ({0: expected} if expected else {})


def test_profiles_of_a_real_gpu() -> None:
    assert list(H200[0]) == ["1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"]
    assert H200[0]["2g.35gb"] == mig.Profile(3, (0, 2, 4), 2)
    assert H200[0]["7g.141gb"] == mig.Profile(1, (0,), 8)
    assert mig.parse_profiles("No MIG-supported devices found.\n", "") == {}


@pytest.mark.parametrize(
    ("devices", "problem"),
    [
        (["7g.141gb"], ""),
        (["3g.71gb", "3g.71gb"], ""),
        (["4g.71gb", "3g.71gb"], ""),
        (["4g.71gb", "1g.18gb", "1g.18gb", "1g.18gb"], ""),
        (["1g.18gb"] * 7, ""),
        (["1g.18gb", "1g.35gb", "1g.35gb", "1g.35gb", "1g.18gb"], ""),
        (["1g.18gb"] * 8, "fit"),
        (["1g.18gb+me", "1g.18gb+me"], "fit"),
        (["3g.71gb", "3g.71gb", "1g.18gb"], "fit"),
        (["4g.71gb", "4g.71gb"], "fit"),
        (["2g.35gb"] * 3 + ["1g.35gb"], ""),
        (["3g.40gb", "1g.10gb"], "has no 1g.10gb and no 3g.40gb; it has 1g.18gb 1g.18gb+me 1g.35gb"),
    ],
)
def test_what_fits_on_a_real_gpu(devices: list[str], problem: str) -> None:
    shall = mig.wanted([{"devices": devices}], [0])
    found = "".join(mig.unfit(shall, H200))
    assert (problem in found) if problem else not found


def test_a_layout_that_does_not_fit_is_refused_before_anything_changes() -> None:
    asked = []

    def run(*command: str, may_fail: bool = False) -> str:
        del may_fail
        asked.append(command)
        recorded = {"-lgip": "mig-profiles.txt", "-lgipp": "mig-placements.txt"}.get(command[-1])
        if recorded:
            return (RECORDED / recorded).read_text(encoding="utf-8")
        return "0, Disabled, Disabled\n" if "query" in command[1] else ""

    with pytest.raises(mig.RefusedError, match=r"GPU 0: it has no 1g\.10gb"):
        mig.Gpus([{"devices": ["1g.10gb"]}], run).apply()
    assert not [command for command in asked if {"-mig", "-cgi", "-dgi", "-dci"} & set(command)]


class Held:
    """nvidia-smi of a GPU that something holds: its mode changes by the next boot, as it says."""

    def __init__(self, mode: str) -> None:
        self.current = self.pending = mode
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, *command: str, may_fail: bool = False) -> str:
        del may_fail
        self.asked.append(command)
        if "-mig" in command:
            self.pending = {"1": "Enabled", "0": "Disabled"}[command[-1]]
            return f"Warning: MIG mode is in pending {self.pending[:-1].lower()} state for GPU 0:07:00.0\n"
        return f"0, {self.current}, {self.pending}\n" if "query" in command[1] else ""


@pytest.mark.parametrize(
    ("mode", "layout", "word"),
    [("Enabled", [], "0"), ("Disabled", [{"devices": ["1g.5gb"]}], "1")],
)
def test_a_mode_that_only_a_reboot_changes_asks_for_one(
    mode: str, layout: list[dict[str, object]], word: str
) -> None:
    gpu = Held(mode)
    assert mig.Gpus(layout, gpu).apply() == mig.NEEDS_REBOOT
    assert [command[-1] for command in gpu.asked if "-mig" in command] == [word]
    assert mig.Gpus(layout, gpu).apply() == mig.NEEDS_REBOOT, "a run that was cut off there"
    assert not [command for command in gpu.asked if "-cgi" in command]


def test_a_machine_without_nvidia_smi_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(mig.RefusedError, match=r"nvidia-smi .*No such file"):
        mig.Gpus([]).differences()


def test_a_gpu_that_is_not_there() -> None:
    assert mig.differences({4: ["1g.5gb"]}, {}, {}) == {
        4: "GPU 4: it is in the layout, and not in this machine"
    }
