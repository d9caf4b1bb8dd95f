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
        (("[N/A]", "[N/A]"), [], ["1g.5gb"], "GPU 0: it cannot be divided"),
    ],
)
def test_what_differs(mode: tuple[str, str], have: list[str], want: list[str], expected: str) -> None:
    found = mig.differences({0: want} if want else {}, {0: mode}, {0: have} if have else {})
    assert found == ({0: expected} if expected else {})


def test_a_gpu_that_is_not_there() -> None:
    assert mig.differences({4: ["1g.5gb"]}, {}, {}) == {
        4: "GPU 4: it is in the layout, and not in this machine"
    }
