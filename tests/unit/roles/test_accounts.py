import grp
import os
import pwd
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/users/library/accounts.py")

Entry = dict[str, Any]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes directories of others")


def account(name: str, uid: int, **more: Any) -> Entry:  # noqa: ANN401
    plain: Entry = {
        "group": None,
        "groups": [],
        "shell": "/bin/bash",
        "comment": "",
        "home": None,
        "ssh_keys": [],
    }
    return {"name": name, "uid": uid, "state": "present", **plain, **more}


def group(name: str, gid: int, state: str = "present") -> Entry:
    return {"name": name, "gid": gid, "state": state}


def user_entry(name: str, uid: int, gid: int, gecos: str = "", shell: str = "/bin/bash") -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, gid, gecos, f"/home/{name}", shell))


def group_entry(name: str, gid: int, *members: str) -> grp.struct_group:
    return grp.struct_group((name, "x", gid, list(members)))


PRESENT = module.Present(
    groups={
        entry.gr_name: entry for entry in (group_entry("alice", 2001), group_entry("project", 3000, "bob"))
    },
    users={entry.pw_name: entry for entry in (user_entry("alice", 2001, 2001),)},
)
EMPTY = module.Present(groups={}, users={})


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of root's in which nobody else may write, as /home is."""
    path = Path(tempfile.mkdtemp(prefix="test-accounts-", dir="/run"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@as_root
def test_directories_that_accounts_lack(place: Path) -> None:
    wanted = (place / "new/bob", 2001, 2002, "0750")
    assert module.make_directory(*wanted, write=False)
    assert not (place / "new").exists()
    assert module.make_directory(*wanted, write=True)
    found = (place / "new/bob").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (2001, 2002, 0o750)
    assert not module.make_directory(*wanted, write=True)
    assert [path.name for path in (place / "new").iterdir()] == ["bob"]


def test_nothing_is_made_where_a_file_system_is_yet_to_be_mounted(tmp_path: Path) -> None:
    """It would be hidden by the mount, which is refused for that."""
    mounts = [str(tmp_path / name) for name in ("scratch", "work")]
    there = [str(tmp_path / "work"), str(tmp_path)]
    accounts = [account("alice", 2001, home=str(tmp_path / "scratch/homes/alice")), account("bob", 2002)]
    directories = [str(tmp_path / name) for name in ("scratch", "work", "scratchy")]
    works = [*module._directory_works(accounts, directories, "0700", "", write=False)]
    kept, awaited = module.without_unmounted(works, mounts, there)
    assert awaited == [mounts[0]]
    assert [work.path for work in works if work not in kept] == [
        f"{tmp_path}/scratch/homes/alice",
        f"{tmp_path}/scratch/alice",
        f"{tmp_path}/scratch/bob",
    ]


@as_root
def test_a_home_has_what_is_in_the_skeleton(place: Path) -> None:
    skeleton = place / "skel"
    (skeleton / ".config").mkdir(parents=True)
    (skeleton / ".config/a").write_text("x")
    (skeleton / ".profile").write_text("x")
    (skeleton / ".profile").chmod(0o640)
    (skeleton / "link").symlink_to("/etc/shadow")
    # What an interrupted run left is no home.
    (place / ".bob.new-by-deploy").mkdir()
    (place / ".bob.new-by-deploy/half").touch()
    shadow = Path("/etc/shadow").stat()
    assert module.make_directory(place / "bob", 2001, 2002, "0700", str(skeleton), write=True)
    found = {str(path.relative_to(place / "bob")): path.lstat() for path in (place / "bob").rglob("*")}
    assert found.keys() == {".config", ".config/a", ".profile", "link"}
    assert {(status.st_uid, status.st_gid) for status in found.values()} == {(2001, 2002)}
    assert found[".profile"].st_mode & 0o777 == 0o640
    assert (place / "bob").stat().st_mode & 0o777 == 0o700
    assert Path("/etc/shadow").stat().st_uid == shadow.st_uid
    assert {path.name for path in place.iterdir()} == {"skel", "bob"}


@as_root
def test_nothing_is_made_where_others_could_put_something_in_the_way(place: Path) -> None:
    place.chmod(0o777)
    with pytest.raises(PermissionError, match="others than root may rename what is there"):
        module.make_directory(place / "bob", 2001, 2002, "0700", write=True)
    assert not [*place.iterdir()]
    place.chmod(0o1777)
    assert module.make_directory(place / "bob", 2001, 2002, "0700", write=True)
    os.chown(place, 2003, 2003)
    with pytest.raises(PermissionError):
        module.make_directory(place / "carol", 2001, 2002, "0700", write=True)


def test_the_skeleton_is_the_one_of_useradd() -> None:
    assert module.skeleton_of("GROUP=100\nSKEL=/opt/skel\nSHELL=/bin/sh\n") == "/opt/skel"
    assert module.skeleton_of("SKEL=\n") == module.skeleton_of("") == "/etc/skel"


@pytest.mark.parametrize(
    ("groups", "accounts", "said"),
    [
        ([], [account("alice", 999)], "uid 999 belongs to the distribution"),
        ([], [account("alice", 64030)], "uid 64030 belongs to the distribution"),
        ([group("wheel", 27)], [], "gid 27 belongs to the distribution"),
        ([], [account("Alice", 2001)], "'Alice' is not a name"),
        ([], [account("-rf", 2001)], "'-rf' is not a name"),
        ([], [account("root", 2001)], "root is not an account of a person"),
        ([], [account("slurm", 2001)], "slurm is not an account of a person"),
        ([], [account("alice", 2001), account("alice", 2002)], "alice is declared 2 times"),
        ([], [account("alice", 2001), account("bob", 2001)], "uid 2001 is declared 2 times"),
        ([group("a", 2001), group("b", 2001)], [], "gid 2001 is declared 2 times"),
        ([], [account("alice", 2001, comment="a:0:0")], "must not have a colon"),
        ([], [account("alice", 2001, ssh_keys=["a\nb"])], "an ssh key is empty or has a line break"),
        ([], [account("alice", 2001, ssh_keys=[""])], "an ssh key is empty or has a line break"),
    ],
)
def test_bad_declarations_are_refused(groups: list[Entry], accounts: list[Entry], said: str) -> None:
    assert said in "; ".join(module.problems(groups, accounts))


@pytest.mark.parametrize("uid", [1000, 59999, 65536, 200000])
def test_ids_of_people_are_taken(uid: int) -> None:
    assert module.problems([], [account("alice", uid)]) == []


def test_account_without_group_gets_its_own() -> None:
    groups = module.with_own_groups([group("project", 3000)], [account("alice", 2001)])
    assert [(entry["name"], entry["gid"]) for entry in groups] == [("project", 3000), ("alice", 2001)]
    assert module.with_own_groups([], [account("bob", 2002, group="project")]) == []


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"alice": 2001}, []),
        ({"new": 2005}, []),
        ({"alice": 2002}, ["alice has uid 2001 on this host, not 2002"]),
        ({"new": 2001}, ["uid 2001, wanted for new, belongs to alice on this host"]),
    ],
)
def test_taken_ids_and_names_are_refused(wanted: dict[str, int], said: list[str]) -> None:
    assert module.clashes(wanted, {"alice": 2001}, "uid") == said


def test_new_account_has_no_password_and_its_ids() -> None:
    [command] = module.account_commands([account("bob", 2002, groups=["project"])], PRESENT)
    text = " ".join(command)
    assert command[0] == "useradd"
    assert command[-1] == "bob"
    assert "--uid 2002 --gid bob --password *" in text
    assert "--no-create-home" in text, (
        "a home may be on a server that does not answer, for which useradd would wait"
    )
    assert "--groups project" in text


@pytest.mark.parametrize(
    ("wish", "options"),
    [
        ({}, None),
        ({"shell": "/bin/sh"}, ["--shell", "/bin/sh"]),
        ({"comment": "Alice"}, ["--comment", "Alice"]),
        ({"home": "/data/alice"}, ["--home", "/data/alice"]),
        ({"group": "project"}, ["--gid", "project"]),
        ({"groups": ["project"]}, ["--append", "--groups", "project"]),
        ({"groups": ["alice"]}, None),
    ],
)
def test_only_what_differs_is_changed(wish: Entry, options: list[str] | None) -> None:
    commands = module.account_commands([account("alice", 2001, **wish)], PRESENT)
    assert commands == ([] if options is None else [["usermod", *options, "alice"]])


def test_another_home_is_a_command_of_its_own() -> None:
    """It is refused while somebody is there, and the rest is not."""
    wish = account("alice", 2001, home="/data/alice", comment="A", groups=["project"])
    assert module.account_commands([wish], PRESENT) == [
        ["usermod", "--comment", "A", "--append", "--groups", "project", "alice"],
        ["usermod", "--home", "/data/alice", "alice"],
    ]


def test_what_a_directory_has_is_changed_by_no_command_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pwd and grp answer from /etc and from the directory; userdel and usermod know /etc alone."""
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    (tmp_path / "group").write_text("root:x:0:\nproject:x:3000:\n")
    people = {"alice": user_entry("alice", 2001, 2001)}
    groups = {
        entry.gr_name: entry
        for entry in (group_entry("alice", 2001), group_entry("project", 3000), group_entry("ldap", 4000))
    }
    monkeypatch.setattr(module, "_USERS", tmp_path / "passwd")
    monkeypatch.setattr(module, "_GROUPS", tmp_path / "group")
    monkeypatch.setattr(module.pwd, "getpwall", list)
    monkeypatch.setattr(module.pwd, "getpwnam", people.__getitem__)
    monkeypatch.setattr(module.grp, "getgrall", lambda: [groups["project"]])
    monkeypatch.setattr(module.grp, "getgrnam", groups.__getitem__)
    present = module.Present.read(["alice", "project", "ldap"], ["alice"])
    assert present.own_users == set()
    gone = [account("alice", 2001, state="absent")]
    groups_gone = [group("alice", 2001, "absent"), group("project", 3000, "absent")]
    assert module.removals(groups_gone, gone, present) == [["groupdel", "project"]]
    wish = account("alice", 2001, comment="A", home="/data/alice", groups=["project", "ldap"])
    assert module.group_commands([group("alice", 2001)], present) == []
    assert module.account_commands([wish], present) == [["gpasswd", "--add", "alice", "project"]]
    host = module.host_of(present, {"accounts": {"alice": {}, "nobody-knows": {}}})
    assert (sorted(host.members), host.users, host.foreign) == (["project"], set(), {"alice"})


def test_group_membership_that_is_there_is_not_repeated() -> None:
    present = module.Present(
        groups={"alice": group_entry("alice", 2001), "project": group_entry("project", 3000, "alice")},
        users=PRESENT.users,
    )
    wish = [account("alice", 2001, groups=["project"])]
    assert module.account_commands(wish, present) == []


def test_removal_takes_accounts_before_groups_and_only_what_is_there() -> None:
    gone = [account("alice", 2001, state="absent"), account("nobody2", 2009, state="absent")]
    groups = [
        group("project", 3000, "absent"),
        group("alice", 2001, "absent"),
        group("never", 3001, "absent"),
    ]
    assert module.removals(groups, gone, PRESENT) == [["userdel", "alice"], ["groupdel", "project"]]


def test_missing_groups_are_added() -> None:
    groups = [group("project", 3000), group("physics", 2000), group("old", 2500, "absent")]
    assert module.group_commands(groups, PRESENT) == [["groupadd", "--gid", "2000", "physics"]]


def test_slurm_is_made_once() -> None:
    assert [command[0] for command in module.slurm_commands(64030, 64030, EMPTY)] == ["groupadd", "useradd"]
    there = module.Present(
        groups={"slurm": group_entry("slurm", 64030)}, users={"slurm": user_entry("slurm", 64030, 64030)}
    )
    assert module.slurm_commands(64030, 64030, there) == []


KEPT = f"{module.BEGIN}\nssh-ed25519 A\n{module.END}\n"


@pytest.mark.parametrize(
    ("text", "keys", "after"),
    [
        ("", [], ""),
        ("", ["ssh-ed25519 A"], KEPT),
        (KEPT, ["ssh-ed25519 A"], KEPT),
        (f"own key\n{KEPT}own too\n", [], "own key\nown too\n"),
        (f"own key\n{KEPT}", ["ssh-ed25519 B "], f"own key\n{module.BEGIN}\nssh-ed25519 B\n{module.END}\n"),
        ("own key", ["ssh-ed25519 A"], f"own key\n{KEPT}"),
    ],
)
def test_kept_keys_follow_the_declaration_and_others_stay(text: str, keys: list[str], after: str) -> None:
    assert module.authorized(text, keys) == after


def test_keys_are_placed_and_placed_once(tmp_path: Path) -> None:
    keys = ["ssh-ed25519 A"]
    assert module.place_keys(str(tmp_path), keys, write=False)
    assert not (tmp_path / ".ssh").exists()
    assert module.place_keys(str(tmp_path), keys, write=True)
    file = tmp_path / ".ssh/authorized_keys"
    assert file.read_text() == KEPT
    assert file.stat().st_mode & 0o777 == 0o600
    assert not module.place_keys(str(tmp_path), keys, write=True)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_home_that_is_not_there_is_no_key_placed(tmp_path: Path) -> None:
    assert module.place_keys(str(tmp_path / "none"), ["ssh-ed25519 A"], write=False)
    assert not module.place_keys(str(tmp_path / "none"), [], write=True)
    with pytest.raises(FileNotFoundError):
        module.place_keys(str(tmp_path / "none"), ["ssh-ed25519 A"], write=True)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


TRAPS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "an endless file": lambda path: path.symlink_to("/dev/zero"),
    "a sparse file of 10 GiB": _sparse,
    "a link to a file of root's": lambda path: path.symlink_to("/etc/shadow"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
}


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
def test_what_a_user_put_in_the_way_is_put_aside(tmp_path: Path, trap: Callable[[Path], object]) -> None:
    shadow = Path("/etc/shadow").stat().st_mtime_ns
    file = tmp_path / ".ssh/authorized_keys"
    file.parent.mkdir()
    trap(file)
    assert not module.place_keys(str(tmp_path), [], write=True), "without keys it is no business of the role"
    assert module.place_keys(str(tmp_path), ["ssh-ed25519 A"], write=True)
    assert file.read_text() == KEPT
    assert not file.is_symlink()
    assert {path.name for path in file.parent.iterdir()} == {file.name, f"{file.name}.put-aside-by-deploy"}
    assert Path("/etc/shadow").stat().st_mtime_ns == shadow


def test_a_file_in_another_encoding_keeps_its_lines(tmp_path: Path) -> None:
    file = tmp_path / ".ssh/authorized_keys"
    file.parent.mkdir()
    file.write_bytes(b"ssh-rsa B J\xf6rg\n")
    assert module.place_keys(str(tmp_path), ["ssh-ed25519 A"], write=True)
    assert file.read_bytes() == b"ssh-rsa B J\xf6rg\n" + KEPT.encode()


class Machine:
    """Runs commands as a host would; some fail."""

    def __init__(self, codes: dict[str, int]) -> None:
        self.codes = codes
        self.ran: list[str] = []

    def run_command(self, command: list[str], **_: object) -> tuple[int, str, str]:
        self.ran.append(" ".join(command))
        return self.codes.get(" ".join(command), 0), "", "no"

    def fail_json(self, *, msg: str) -> None:
        raise SystemExit(msg)


def test_an_account_with_processes_is_closed_and_the_rest_goes_on() -> None:
    machine = Machine({"userdel alice": 8, "groupdel project": 8})
    pending = module.run(machine, [["userdel", "alice"], ["groupdel", "project"], ["groupadd", "new"]])
    assert machine.ran == [
        "userdel alice",
        "usermod --expiredate 1 --shell /usr/sbin/nologin alice",
        "groupdel project",
        "groupadd new",
    ]
    assert [text.split(":")[0] for text in pending] == ["account alice", "group project"]
    with pytest.raises(SystemExit, match="userdel bob: no"):
        module.run(Machine({"userdel bob": 10}), [["userdel", "bob"]])


def test_a_home_that_is_in_use_waits_and_the_rest_goes_on() -> None:
    machine = Machine({"usermod --home /data/alice alice": 8})
    commands = [["usermod", "--home", "/data/alice", "alice"], ["groupadd", "new"]]
    (waits,) = module.run(machine, commands)
    assert waits.startswith("account alice: its home is not /data/alice yet, because processes of it run")
    assert machine.ran[-1] == "groupadd new"


def test_a_closed_account_that_is_wanted_again_is_opened() -> None:
    present = module.Present(
        groups={"alice": group_entry("alice", 2001)},
        users={"alice": user_entry("alice", 2001, 2001, "", "/usr/sbin/nologin")},
    )
    (command,) = module.account_commands([account("alice", 2001)], present)
    assert command == ["usermod", "--shell", "/bin/bash", "--expiredate", "", "alice"]
