import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/module_utils/user_files.py")

SECONDS = 0.3
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as others")


def work(name: str, path: Path, do: Callable[[], Any], uid: int = 0) -> Any:  # noqa: ANN401
    return module.Work(name, str(path), uid, uid, do)


def hang(pipe: Path) -> None:
    """As a file server that is gone: nobody ever opens the other end."""
    os.open(pipe, os.O_RDONLY)


def test_one_that_hangs_holds_up_nobody_else(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    works = [
        work("before", tmp_path, lambda: 1),
        work("hangs", tmp_path, partial(hang, pipe)),
        work("after", tmp_path, lambda: [2]),
    ]
    outcomes = module.as_owners(works, SECONDS)
    assert outcomes["before"].value == 1
    assert outcomes["after"].value == [2]
    assert outcomes["hangs"].problem == f"{tmp_path} does not answer within 0.3 s"


def test_where_a_file_system_does_not_answer_it_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(module, "_answers", lambda _: hang(pipe))
    works = [work(str(number), tmp_path, partial(hang, pipe)) for number in range(50)]
    began: list[int] = []
    until = module._until_one_hangs

    def counted(*told: Any) -> Any:  # noqa: ANN401
        began.append(1)
        return until(*told)

    monkeypatch.setattr(module, "_until_one_hangs", counted)
    outcomes = module.as_owners(works, SECONDS)
    assert len(outcomes) == len(works)
    assert all("does not answer" in outcome.problem for outcome in outcomes.values())
    assert len(began) == 2, "once for the first, once for its file system"


def test_a_fault_in_one_is_told_with_its_reason(tmp_path: Path) -> None:
    def breaks() -> None:
        raise KeyError("x")

    works = [
        work("odd", tmp_path, breaks),
        work("missing", tmp_path, lambda: list((tmp_path / "none").iterdir())),
        work("well", tmp_path, lambda: "well"),
    ]
    outcomes = module.as_owners(works, SECONDS)
    assert outcomes["odd"].problem == f"{tmp_path}: KeyError: 'x'"
    assert outcomes["missing"].problem == f"{tmp_path}/none: No such file or directory"
    assert outcomes["well"].value == "well"


@as_root
def test_what_only_root_may_do_is_not_done_for_a_user() -> None:
    works = [
        work("theirs", Path("/"), lambda: module.read_small("/etc/shadow"), uid=NOBODY),
        work("mine", Path("/"), lambda: len(module.read_small("/etc/shadow")) > 0),
    ]
    outcomes = module.as_owners(works)
    assert outcomes["theirs"].problem == "/etc/shadow: Permission denied"
    assert outcomes["mine"].value is True
    assert os.geteuid() == 0


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/tty", "/dev/null"])
def test_devices_are_not_read(device: str) -> None:
    with pytest.raises(module.UnfitError):
        module.read_small(device)


def test_a_small_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * module._LARGEST)
    assert len(module.read_small(str(tmp_path / "file"))) == module._LARGEST
    (tmp_path / "file").write_bytes(b"x" * (module._LARGEST + 1))
    with pytest.raises(module.UnfitError, match="larger than 1 MiB"):
        module.read_small(str(tmp_path / "file"))


def test_a_link_leads_to_the_file_server_and_a_file_server_is_not_asked_for_links(tmp_path: Path) -> None:
    server = tmp_path / "server"
    (server / "alice").mkdir(parents=True)
    (server / "alice/.ssh").symlink_to("/")
    (tmp_path / "relative").symlink_to("server/alice")
    (tmp_path / "absolute").symlink_to(server / "alice")
    (tmp_path / "circle").symlink_to("circle")
    mounts = [module.Mount("root", "/", "ext4"), module.Mount("nas:/home", str(server), "nfs4")]
    for path in ("relative", "absolute", "server/alice", "server/alice/.ssh/file", "relative/.ssh"):
        assert module._place(str(tmp_path / path), mounts) == str(server)
    for path in ("circle", "none", "circle/more"):
        assert module._place(str(tmp_path / path), mounts) == "/"
