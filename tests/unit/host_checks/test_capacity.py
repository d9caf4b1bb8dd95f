import os
from pathlib import Path

from tests.unit.host_checks.checks import part, said

capacity = part("capacity")
MIB = 1024 * 1024


def filesystem(
    *, free_mb: int = 5000, inodes: int = 10**6, free_inodes: int = 10**5, flags: int = 0
) -> os.statvfs_result:
    block = 4096
    free = free_mb * MIB // block
    return os.statvfs_result(
        (block, block, free * 2, free + 9, free, inodes, free_inodes, free_inodes, flags, 255)
    )


def check(
    needs: dict[str, int], state: os.statvfs_result, devices: dict[str, int] | None = None
) -> list[dict[str, str]]:
    wanted = [{"path": path, "mb": mb} for path, mb in needs.items()]
    devices = devices or {}
    return list(capacity.check_disks(wanted, lambda _: state, lambda path: devices.get(str(path), 1)))


def test_enough_room() -> None:
    assert check({"/var": 1000, "/": 5000}, filesystem()) == []


def test_a_full_disk_is_said_once_by_the_path_that_needs_most() -> None:
    (finding,) = check({"/etc": 100, "/var": 6000, "/usr": 5500}, filesystem())
    assert said([finding]) == [("error", "disk-full")]
    assert finding["message"] == "the file system of /var has 5000 MiB free, 6000 are needed"


def test_file_systems_are_judged_by_themselves() -> None:
    found = check({"/etc": 6000, "/var": 6000}, filesystem(), {"/etc": 1, "/var": 2})
    assert len(found) == 2


def test_what_root_alone_may_use_does_not_count() -> None:
    assert said(check({"/": 5001}, filesystem(free_mb=5000))) == [("error", "disk-full")]


def test_read_only_and_out_of_inodes() -> None:
    assert said(check({"/": 1}, filesystem(flags=os.ST_RDONLY))) == [("error", "disk-read-only")]
    assert said(check({"/": 1}, filesystem(free_inodes=10))) == [("error", "disk-out-of-inodes")]
    assert check({"/": 1}, filesystem(inodes=0, free_inodes=0)) == []


def test_a_directory_that_is_not_there_yet_is_on_its_parents_file_system(tmp_path: Path) -> None:
    needs = [{"path": str(tmp_path / "not" / "there"), "mb": 0}]
    assert list(capacity.check_disks(needs)) == []
    needs[0]["mb"] = 10**9
    assert said(capacity.check_disks(needs)) == [("error", "disk-full")]


def test_memory() -> None:
    assert capacity.memory_mb("MemTotal:  2048000 kB\nMemFree: 1 kB\n") == 2000
    assert list(capacity.check_memory(2000, 900, 1900)) == []
    assert said(capacity.check_memory(1899, 900, 1900)) == [("warning", "memory-small")]
    assert said(capacity.check_memory(899, 900, 1900)) == [("error", "memory-too-small")]


def test_scratch_that_can_fill_the_root_file_system() -> None:
    devices = {"/": 1, "/var": 1, "/var/tmp": 1}

    def device(path: Path) -> int:
        return devices[str(path)]

    paths = ["/var/no-such-directory", "/var/tmp"]
    (finding,) = capacity.check_scratch(paths, device)
    assert said([finding]) == [("warning", "scratch-on-root")]
    assert finding["message"].endswith("/var/no-such-directory, /var/tmp are on it")
    devices["/var"] = 3
    (finding,) = capacity.check_scratch(paths, device)
    assert finding["message"].endswith("file system: /var/tmp is on it")
    devices["/var/tmp"] = 4
    assert list(capacity.check_scratch(paths, device)) == []
    assert list(capacity.check_scratch([], device)) == []
