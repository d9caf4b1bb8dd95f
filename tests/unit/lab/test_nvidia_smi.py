import errno
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deploy.lab import nvidia_smi


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Device files that answer like ours: opening a socket's file gives ENXIO."""
    monkeypatch.chdir(tmp_path)  # a socket's path may not be long
    with (
        closing(socket.socket(socket.AF_UNIX)) as first,
        closing(socket.socket(socket.AF_UNIX)) as tenth,
    ):
        first.bind("nvidia1")
        tenth.bind("nvidia10")
        (tmp_path / "nvidiactl").touch()
        yield tmp_path


def refuse(number: int, code: int) -> Callable[[Path], None]:
    def open_device(path: Path) -> None:
        raise OSError(code if path.name == f"nvidia{number}" else errno.ENXIO, "refused")

    return open_device


def test_devices_without_a_driver_are_usable(devices: Path) -> None:
    assert list(nvidia_smi.usable(devices)) == [1, 10]


@pytest.mark.parametrize("code", [errno.EPERM, errno.EACCES])
def test_a_denied_device_is_not_there(devices: Path, code: int) -> None:
    assert list(nvidia_smi.usable(devices, refuse(1, code))) == [10]


def test_a_device_with_a_driver_is_usable(tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    assert list(nvidia_smi.usable(tmp_path)) == [0]


def test_list(devices: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nvidia_smi.main(["-L"], devices) == 0
    host = socket.gethostname()
    assert capsys.readouterr().out == (
        f"GPU 1: Simulated A100 (UUID: GPU-simulated-{host}-1)\n"
        f"GPU 10: Simulated A100 (UUID: GPU-simulated-{host}-10)\n"
    )


def test_table_says_what_it_is(devices: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nvidia_smi.main([], devices) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "simulation" in lines[1]
    assert "Simulated A100" in lines[3]
    assert len(lines) == 6


@pytest.mark.parametrize(
    ("fields", "words", "lines"),
    [
        ("utilization.gpu", "csv,noheader", ["0 %", "0 %"]),
        ("index,name,memory.used", "csv,noheader,nounits", ["1, Simulated A100, 0", "10, Simulated A100, 0"]),
        ("power.draw", "csv, noheader", ["[N/A]", "[N/A]"]),
    ],
)
def test_query(
    fields: str, words: str, lines: list[str], devices: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nvidia_smi.main([f"--query-gpu={fields}", f"--format={words}"], devices) == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    "arguments", [["--query-gpu=index"], ["--query-gpu=index", "--format=csv"], ["--query-gpu=index", "-i0"]]
)
def test_other_queries_are_not_simulated(arguments: list[str], devices: Path) -> None:
    assert nvidia_smi.main(arguments, devices) == 2


def test_no_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nvidia_smi.main(["-L"], tmp_path) == 6
    assert "simulation" in capsys.readouterr().out


def test_the_file_stands_alone() -> None:
    run = subprocess.run(
        [sys.executable, "-I", nvidia_smi.__file__, "--help"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "simulation" in run.stderr
