"""Homes as there really are: links to elsewhere, and places where root itself may not look.

Root without its rights over the files of others (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH in capabilities(7))
meets what it does on an export with root_squash (exports(5)): only their owner comes to a user's files.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.run import host_records

ROOT = Path(__file__).parents[3]
USER = 65534
KEYS = "ssh-ed25519 A\n"
_IMPORTS = "import json, pathlib, pwd, sys; from tests.unit.roles.loading import load_module"
_WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root looks into the homes of others")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of root's that all may enter, as /home is."""
    path = Path(tempfile.mkdtemp(prefix="test-homes-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def give(*paths: Path) -> None:
    for path in paths:
        os.chown(path, USER, USER, follow_symlinks=False)


@pytest.fixture
def home(place: Path) -> Path:
    """A home that its owner keeps closed, with a key."""
    home = place / "home"
    keys = home / ".ssh/authorized_keys"
    keys.parent.mkdir(parents=True)
    keys.write_text(KEYS)
    for path, mode in ((keys, 0o600), (keys.parent, 0o700), (home, 0o700)):
        give(path)
        path.chmod(mode)
    return home


def without_rights(program: str, *arguments: object) -> Any:  # noqa: ANN401
    """What a program answers that root runs without rights over the files of others."""
    command = [*_WITHOUT_RIGHTS, sys.executable, "-c", f"{_IMPORTS}\n{program}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


LOOK = "from deploy.run import host_records; print(json.dumps(host_records.files(sys.argv[1:])))"
OPEN = "print(json.dumps([pathlib.Path(path).exists() for path in sys.argv[1:]]))"
PLACE = """
module = load_module("roles/users/library/accounts.py")
files = load_module("playbooks/module_utils/user_files.py")
home, uid = sys.argv[1], int(sys.argv[2])
do = lambda: module.place_keys(home, sys.argv[3:], write=True)
outcome = files.as_owners([files.Work("keys", home, uid, uid, do)])["keys"]
print(json.dumps([outcome.value, outcome.problem]))
"""
HAS_KEY = """
module = load_module("roles/ssh_server/library/sshd_settings.py")
account = pwd.struct_passwd(("alice", "x", int(sys.argv[2]), int(sys.argv[2]), "", sys.argv[1], "/bin/bash"))
print(json.dumps(module._has_key({"authorizedkeysfile": [".ssh/authorized_keys"]}, account)))
"""


def test_root_may_really_not_look(home: Path) -> None:
    program = f"try: {OPEN}\nexcept PermissionError: print(json.dumps('denied'))"
    assert without_rights(program, home / ".ssh/authorized_keys") == "denied"


def test_what_root_may_not_look_at_is_looked_at_as_its_owner(home: Path) -> None:
    keys, missing = home / ".ssh/authorized_keys", home / ".ssh/none"
    assert without_rights(LOOK, keys, missing, home) == {
        **host_records.files([str(keys), str(missing), str(home)]),
        str(missing): None,
    }
    assert host_records.files([str(keys)])[str(keys)]["content"] == hashlib.sha256(KEYS.encode()).hexdigest()


def test_what_not_even_its_owner_may_look_at_is_not_called_missing(home: Path) -> None:
    keys = home / ".ssh/authorized_keys"
    (home / ".ssh").chmod(0)
    assert without_rights(LOOK, keys) == {str(keys): {"type": "no answer"}}


def test_keys_are_placed_where_root_may_nothing(home: Path) -> None:
    assert without_rights(PLACE, home, USER, "ssh-ed25519 B") == [True, ""]
    assert without_rights(PLACE, home, USER, "ssh-ed25519 B") == [False, ""]
    assert "ssh-ed25519 B" in (home / ".ssh/authorized_keys").read_text()
    # Root itself comes to no key there, and says so.
    value, problem = without_rights(PLACE, home, 0, "ssh-ed25519 C")
    assert value is None
    assert "Permission denied" in problem


def test_sshd_settings_see_the_key_where_root_may_nothing(home: Path) -> None:
    assert without_rights(HAS_KEY, home, USER) is True
    (home / ".ssh/authorized_keys").unlink()
    assert without_rights(HAS_KEY, home, USER) is False


@pytest.fixture(params=["root's link", "the user's link"])
def linked(request: pytest.FixtureRequest, place: Path, home: Path) -> Path:
    """A link to the home, in a directory where only root makes links."""
    link = place / "link"
    link.symlink_to(home)
    if request.param == "the user's link":
        give(link)
    return link


def test_a_home_that_is_a_link_has_its_keys(linked: Path, home: Path) -> None:
    keys = linked / ".ssh/authorized_keys"
    real = str(home / ".ssh/authorized_keys")
    assert host_records.files([str(keys)])[str(keys)] == host_records.files([real])[real]
    assert without_rights(LOOK, keys)[str(keys)] == host_records.files([real])[real]
    assert without_rights(PLACE, linked, USER, "ssh-ed25519 B") == [True, ""]
    assert "ssh-ed25519 B" in Path(real).read_text()
    assert linked.is_symlink()
    assert without_rights(HAS_KEY, linked, USER) is True


def test_a_link_that_a_user_could_make_is_not_followed(home: Path) -> None:
    (home / "other").symlink_to("/etc")
    give(home / "other")
    assert host_records.files([f"{home}/other/hostname"]) == {
        f"{home}/other/hostname": {"type": "behind a link that is not root's"}
    }


def test_a_home_that_links_to_a_server_that_does_not_answer_holds_up_nobody(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, link = place / "server", place / "link"
    link.symlink_to("server/alice")
    monkeypatch.setattr(host_records, "_remote_places", lambda: [str(server)])
    # What is asked in a process of its own, for which nobody waits.
    monkeypatch.setattr(host_records, "_in_time", lambda paths: dict.fromkeys(paths, "in time"))
    keys, here = f"{link}/.ssh/authorized_keys", f"{place}/here"
    assert host_records.files([keys, here]) == {keys: "in time", here: None}


def test_links_that_lead_in_circles_come_to_an_end(place: Path) -> None:
    one, two = place / "one", place / "two"
    one.symlink_to(two)
    two.symlink_to(one)
    assert host_records.files([f"{one}/file"]) == {f"{one}/file": None}
