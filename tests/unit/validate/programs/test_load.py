import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deploy.validate.programs import kernel, load

RECORDED = Path(__file__).parents[1] / "recorded"
HPL = """\
import pathlib, sys
n = pathlib.Path("hpccinf.txt").read_text().splitlines()[5].split()[0]
pathlib.Path("sizes").open("a").write(f"{n} ")
pathlib.Path("hpccoutf.txt").open("a").write(
    f"WR11C2R4 {n} 192 1 1 0.10 6.766e+00\\n||Ax-b||_oo/(eps*(||A||_oo*||x||_oo))= 0.007 ...... RESULT\\n"
)
"""


def test_what_hpcc_says() -> None:
    text = (RECORDED / "hpcc-1.5.0.txt").read_text()
    assert load.read_hpl(text) == [{"n": 1000, "seconds": 0.1, "gflops": 6.766, "is_right": True}]
    assert load.read_hpl(text.replace("PASSED", "FAILED"))[0]["is_right"] is False
    assert load.read_hpl("") == []


def test_three_residuals_must_all_be_small() -> None:
    line = "WR00L2L2  3000  80  1  4   5.56  3.2e+00\n"
    residual = "||Ax-b||_oo / ( eps * ||A||_1  * N        ) =        0.0247420 ...... {}\n"
    text = line + "".join(residual.format(word) for word in ("PASSED", "FAILED", "PASSED"))
    assert load.read_hpl(text)[0]["is_right"] is False


@pytest.mark.parametrize(
    ("ranks", "shape"), [(1, (1, 1)), (2, (1, 2)), (12, (3, 4)), (128, (8, 16)), (7, (1, 7))]
)
def test_the_grid_is_as_square_as_can_be(ranks: int, shape: tuple[int, int]) -> None:
    assert load.grid(ranks) == shape


def test_a_system_fits_time_and_memory() -> None:
    assert load.next_size(1.0, 0.0, 1000) == 1000
    by_time, by_memory = load.next_size(1000.0, 120, 10**9), load.next_size(1e6, 120, 64_000)
    assert 50_000 < by_time < 60_000
    assert 60_000 < by_memory < 64_000
    assert 8 * by_memory**2 <= 0.5 * 64_000e6


def test_the_end_of_the_chaotic_sum_is_known() -> None:
    assert load.iterated() == load.RIGHT


def test_own_load_finds_wrong_arithmetic_and_wrong_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load.own_load(0.3, 4)
    assert (found["what"], found["wrong"]) == ("own", [])
    assert found["rounds"] >= 1
    assert found["rate"] > 0
    monkeypatch.setattr(load, "RIGHT", 0.5)
    assert "arithmetic gave 0.0153" in load.own_load(0.1, 4)["wrong"][0]


def test_memory_that_is_not_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe:
        def send(self, answer: dict[str, Any]) -> None:
            self.answer = answer

    def spoilt(megabytes: int) -> bytearray:
        held = filled(megabytes)
        held[12345] ^= 1
        return held

    pipe, filled = Pipe(), load.filled
    monkeypatch.setattr(load, "filled", spoilt)
    load.own_work(time.time() + 0.1, 2, load.RIGHT, pipe)
    assert pipe.answer["wrong"][0] == "2 MiB of memory are not what was written"


def _way(tmp_path: Path, result: str = "PASSED") -> list[str]:
    program = tmp_path / "hpl.py"
    program.write_text(HPL.replace("RESULT", result))
    return ["/bin/sh", "-c", 'exec "$0" "$@"', sys.executable, str(program)]


def test_hpl_runs_until_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(load, "_SLACK", 0)
    found = load.hpl(_way(tmp_path), 0.5, 1000, str(tmp_path))
    assert found is not None
    assert (found["what"], found["rate"], found["wrong"]) == ("HPL", 6.766, [])
    # HPCC adds to its file; every system counts once.
    assert found["rounds"] == len((tmp_path / "sizes").read_text().split()) > 1
    wrong = load.hpl(_way(tmp_path, "FAILED"), 0.1, 1000, str(tmp_path))
    assert wrong is not None
    assert wrong["wrong"][0] == "HPL's residual is too large (N=1000)"


def test_hpl_that_is_not_there_or_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert load.hpl(["/bin/sh", "-c", "exit 127"], 1, 100, str(tmp_path)) is None
    found = load.hpl(["/bin/sh", "-c", "echo no memory; exit 3"], 1, 100, str(tmp_path))
    assert found is not None
    assert found["wrong"] == ["it ended with 3: no memory"]


def test_a_whole_round(tmp_path: Path) -> None:
    missing = [
        "/bin/sh",
        "-c",
        'command -v "$0" >/dev/null 2>&1 || { exit 127; }; exec "$0" "$@"',
        "no-such-program",
    ]
    burner = ["/bin/sh", "-c", 'echo "deploy-missing: torch"; exit 127']
    given = {
        "seconds": 0.5,
        "answer": str(tmp_path / "answer"),
        "directory": str(tmp_path / "work"),
        "memory_mb": 8,
        "gpus": 1,
        "hpl": [missing],
        "python": burner,
    }
    subprocess.run(
        [sys.executable, "-I", "-c", Path(load.__file__).read_text(), json.dumps(given)], check=True
    )
    answer = json.loads((tmp_path / "answer").read_text())
    assert answer["cpu"]["what"] == "own"
    assert answer["cpu"]["rounds"] >= len(os.sched_getaffinity(0))
    assert answer["gpus"] == [{"gpu": 0, "missing": True, "wrong": []}]
    assert [path.name for path in tmp_path.iterdir()] == ["answer"]


def test_what_a_kernel_complains_of() -> None:
    text = """\
NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.
mce: [Hardware Error]: Machine check events logged
EDAC MC0: 1 CE memory read error on CPU_SrcID#0
EDAC MC: Ver: 3.0.0
Memory cgroup out of memory: Killed process 4242 (python3)
usb 1-1: new device
"""
    assert [line.split()[0] for line in kernel.complaints_in(text)] == ["NVRM:", "mce:", "EDAC"]
