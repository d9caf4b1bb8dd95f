import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module
from tests.unit.silent_mirror import needs_apt, silent_mirror

module = load_module("roles/bootstrap/module_utils/apt_host.py")

HOUR = 3600.0


def test_packages_left_half_way_are_found() -> None:
    statuses = "ii  bash\niU  tree\niF  chrony\nrc  old\niHR broken\nit  man-db\niW  libc-bin\nun  never\n"
    assert module.unfinished(statuses) == ["tree", "chrony", "broken", "man-db", "libc-bin"]


@pytest.fixture
def places(tmp_path: Path) -> object:
    for name in ("var/lib/apt/lists/partial", "var/lib/apt/periodic", "etc/apt/sources.list.d"):
        (tmp_path / name).mkdir(parents=True)
    return module.Places(root=tmp_path)


def refreshed(root: Path, at: float) -> None:
    lists = root / "var/lib/apt/lists"
    (lists / "mirror_dists_trixie_main_binary-amd64_Packages.lz4").touch()
    os.utime(lists, (at, at))


def test_missing_lists_are_old(places: object, tmp_path: Path) -> None:
    assert module.lists_are_old(places, now=0.0, hours=24)
    refreshed(tmp_path, at=1000 * HOUR)
    assert not module.lists_are_old(places, now=1000 * HOUR, hours=24)


@pytest.mark.parametrize(("age", "old"), [(23, False), (25, True)])
def test_lists_grow_old(places: object, tmp_path: Path, age: int, old: bool) -> None:  # noqa: FBT001
    refreshed(tmp_path, at=1000 * HOUR)
    assert module.lists_are_old(places, now=(1000 + age) * HOUR, hours=24) is old


def test_stamp_of_another_refresh_counts(places: object, tmp_path: Path) -> None:
    refreshed(tmp_path, at=1000 * HOUR)
    stamp = tmp_path / "var/lib/apt/periodic/update-success-stamp"
    stamp.touch()
    os.utime(stamp, (1030 * HOUR, 1030 * HOUR))
    assert not module.lists_are_old(places, now=1040 * HOUR, hours=24)


def test_lists_from_before_new_sources_are_old(places: object, tmp_path: Path) -> None:
    refreshed(tmp_path, at=1000 * HOUR)
    source = tmp_path / "etc/apt/sources.list.d/extra.sources"
    source.touch()
    os.utime(source, (1001 * HOUR, 1001 * HOUR))
    assert module.lists_are_old(places, now=1002 * HOUR, hours=24)


def test_lists_from_before_a_bundle_came_or_went_are_old(places: object, tmp_path: Path) -> None:
    bundle = tmp_path / "etc/apt/deploy.sources.d"
    bundle.mkdir()
    refreshed(tmp_path, at=1000 * HOUR)
    os.utime(bundle, (1001 * HOUR, 1001 * HOUR))
    assert module.lists_are_old(places, now=1002 * HOUR, hours=24)


class Module:
    """An AnsibleModule that runs commands where apt-get is somebody's own."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    def run_command(self, command: list[str], environ_update: dict[str, str]) -> tuple[int, str, str]:
        environment = {**os.environ, **self._environment, **environ_update}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    def fail_json(self, msg: str, **_: object) -> None:
        pytest.fail(msg)


@needs_apt
def test_lists_that_were_not_fetched_are_old_after_an_hour(tmp_path: Path) -> None:
    host = module.AptHost(Module(silent_mirror(tmp_path)))
    host.places = module.Places(root=tmp_path)
    (missed,) = host.refresh()
    assert "127.0.0.1:9" in missed
    # What another program says of a refresh, a part of which it got, does not make them whole.
    stamp = tmp_path / "var/lib/apt/periodic/update-success-stamp"
    stamp.parent.mkdir()
    stamp.touch()
    (tmp_path / "var/lib/apt/lists/mirror_Packages").touch()
    now = stamp.stat().st_mtime
    assert module.lists_are_old(host.places, now + 1.1 * HOUR, hours=24)
    # A source that is gone for good does not have every run wait for it.
    assert not module.lists_are_old(host.places, now, hours=24)
    assert not any("refreshed" in action for action in host.actions)
    # The mirror answers again.
    (tmp_path / "etc/apt/sources.list").write_text("")
    os.utime(tmp_path / "etc/apt/sources.list", (0, 0))
    assert host.refresh() == []
    (tmp_path / "var/lib/apt/lists/mirror_Packages").touch()
    assert not module.lists_are_old(host.places, now + 1.1 * HOUR, hours=24)


def test_descriptions_of_packages_stay_as_they_are(places: object, tmp_path: Path) -> None:
    assert module.list_options(places) == ("-o", "Acquire::Languages=none")
    refreshed(tmp_path, at=1000 * HOUR)
    assert module.list_options(places) == ("-o", "Acquire::Languages=none")
    (tmp_path / "var/lib/apt/lists/mirror_dists_trixie_main_i18n_Translation-en.lz4").touch()
    assert module.list_options(places) == ()


def test_lock_of_another_process_is_seen(tmp_path: Path) -> None:
    free, taken = tmp_path / "free", tmp_path / "taken"
    free.touch()
    taken.touch()
    program = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True)"
    )
    program += "; input()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(taken)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert module.held([tmp_path / "missing", free, taken]) == taken
        holder.communicate("\n")
    assert module.held([free, taken]) is None


def test_asking_for_a_lock_does_not_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    assert module.held([path]) is None
    with path.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_waits_until_a_lock_is_free() -> None:
    clock = Clock()
    answer = module.wait(lambda: Path("lock") if clock.now < 7 else None, 300, clock, clock.sleep)
    assert answer is None
    assert 7 <= clock.now < 10


def test_gives_up_at_the_timeout() -> None:
    clock = Clock()
    assert module.wait(lambda: Path("lock"), 10, clock, clock.sleep) == Path("lock")
    assert 10 <= clock.now < 13


def test_installed_packages_without_architecture() -> None:
    lines = "ii  chrony\nrc  old\niU  half\nii  libc6:amd64\nii  libc6:i386\n"
    assert module.installed(lines) == ["chrony", "libc6"]
