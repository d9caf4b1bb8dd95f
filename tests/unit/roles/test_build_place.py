import os
import pwd
from importlib import import_module
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

load_module("roles/ml_stack/library/ml_environments.py")
build_place = import_module("ansible.module_utils.build_place")
ml = import_module("ansible.module_utils.ml_environment")


def test_what_is_copied_is_new_and_nobody_elses_to_change(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "bin").mkdir(parents=True)
    target.mkdir()
    for name, mode in (("bin/tool", 0o6777), ("data", 0o666)):
        (source / name).write_text(name)
        (source / name).chmod(mode)
    os.utime(source / "data", (1, 2))
    (source / "python").symlink_to("/usr/bin/python3")
    old = os.umask(0o022)
    try:
        build_place.copy_tree(source, target)
    finally:
        os.umask(old)
    modes = {name: (target / name).stat().st_mode & 0o7777 for name in ("bin", "bin/tool", "data")}
    assert modes == {"bin": 0o755, "bin/tool": 0o755, "data": 0o644}
    assert (target / "python").readlink() == Path("/usr/bin/python3")
    assert (target / "data").stat().st_mtime == 2
    assert (target / "data").stat().st_ino != (source / "data").stat().st_ino


def test_what_is_no_file_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "target").mkdir()
    os.mkfifo(tmp_path / "source/pipe")
    with pytest.raises(build_place.BuildError, match="neither a file nor a directory nor a link"):
        build_place.copy_tree(tmp_path / "source", tmp_path / "target")


def test_the_account_owns_what_it_builds_in_and_only_while_it_builds(tmp_path: Path) -> None:
    me = pwd.getpwuid(os.getuid())
    place = build_place.BuildPlace(me, tmp_path / "home/build")
    (tmp_path / "home/build/left").mkdir(parents=True)
    with place.made():
        assert sorted(path.name for path in place.directory.iterdir()) == ["environment", "tmp", "wheels"]
    assert not place.directory.exists()


def test_a_command_drops_all_rights_before_it_begins(tmp_path: Path) -> None:
    me = pwd.getpwuid(os.getuid())
    command = build_place.BuildPlace(me, tmp_path).command(Path("/s/x"), ["pip", "install"])
    own = command[command.index("setpriv") :]
    assert own == [
        *("setpriv", f"--reuid={me.pw_uid}", f"--regid={me.pw_gid}", "--clear-groups", "--no-new-privs"),
        *("--", "pip", "install"),
    ]


def test_a_lock_has_every_wheel_with_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "torch-2.9.1+cu126-cp312-cp312-manylinux_2_28_x86_64.whl").write_bytes(b"torch")
    (tmp_path / "a_b-1.0-py3-none-any.whl").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    lines = ml.lock_lines(tmp_path)
    assert lines[0] == f"a_b==1.0 --hash=sha256:{empty}"
    assert lines[1].startswith("torch==2.9.1+cu126 --hash=sha256:")
