#!/usr/bin/python
"""Ansible module: the slurm user and declared accounts, all in one run."""

import errno
import grp
import os
import pwd
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ansible.module_utils.account_declarations import SLURM, problems
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.given import given as given_before
from ansible.module_utils.given import remember
from ansible.module_utils.given_accounts import Host, former, meanwhile, remembered, revocations
from ansible.module_utils.mount_table import mounted
from ansible.module_utils.user_files import UnfitError, Work, as_owners, opened, read_small, replace_small

DOCUMENTATION = r"""
module: accounts
short_description: The slurm user and declared accounts, all in one run
description:
  - Creates, changes and removes groups and accounts of people, and keeps their ssh keys.
  - Refuses to change an id, and to give people an id that belongs to the distribution.
  - Remembers what it gave. Groups and keys that an account is declared with no more are taken away; an
    account that is declared no more loses both and is closed, and keeps its files.
options:
  slurm_uid:
    description: The user id of slurm.
    type: int
    required: true
  slurm_gid:
    description: The group id of slurm.
    type: int
    required: true
  groups:
    description: Groups of people; see the role's argument specification for their keys.
    type: list
    elements: dict
    default: []
  accounts:
    description: Accounts of people; see the role's argument specification for their keys.
    type: list
    elements: dict
    default: []
  create_home:
    description: Whether homes are created and ssh keys written.
    type: bool
    default: true
  directories:
    description: Directories in which each account has one of its own name, made where homes are created.
    type: list
    elements: path
    default: []
  mounts:
    description: Where file systems are mounted. While they are not, nothing is made below, and it is said.
    type: list
    elements: path
    default: []
  home_mode:
    description: The mode of a new home, and of a new directory in C(directories).
    type: str
    default: "0700"
author: [the maintainers of this project]
"""

RETURN = r"""
actions:
  description: The commands that were run, or would be in check mode.
  type: list
  returned: always
deploy_pending:
  description: What could not be done and must not hold up all the rest, with the reason.
  type: list
  returned: always
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""

BEGIN = "# BEGIN keys kept by deploy"
END = "# END keys kept by deploy"

_BLOCK = re.compile(rf"^{re.escape(BEGIN)}\n.*?^{re.escape(END)}\n", re.MULTILINE | re.DOTALL)
_NO_SHELL = "/usr/sbin/nologin"
_CLOSED = ("--expiredate", "1", "--shell", _NO_SHELL)
_IN_USE = 8
"""What userdel(8) and usermod(8) exit with for an account with processes, groupdel(8) for a first group."""
_HOME = "--home"
_USERS, _GROUPS = Path("/etc/passwd"), Path("/etc/group")
_KEYS = PurePosixPath(".ssh/authorized_keys")
_ASIDE = f"{_KEYS.name}.put-aside-by-deploy"
_REMEMBERED = "accounts"


@dataclass(frozen=True)
class Present:
    """What a host has: groups and users by name."""

    groups: Mapping[str, grp.struct_group]
    users: Mapping[str, pwd.struct_passwd]
    foreign_groups: frozenset[str] = frozenset()
    foreign_users: frozenset[str] = frozenset()
    """Of a directory service: useradd(8) counts them as there, and no command of the host changes them."""

    @classmethod
    def read(cls, groups: Sequence[str], users: Sequence[str]) -> "Present":
        """All local entries, and those named here that come from a directory service."""
        known_groups = {entry.gr_name: entry for entry in grp.getgrall()}
        known_users = {entry.pw_name: entry for entry in pwd.getpwall()}
        for name in set(groups) - set(known_groups):
            try:
                known_groups[name] = grp.getgrnam(name)
            except KeyError:
                continue
        for name in set(users) - set(known_users):
            try:
                known_users[name] = pwd.getpwnam(name)
            except KeyError:
                continue
        foreign = frozenset(known_groups) - _names(_GROUPS), frozenset(known_users) - _names(_USERS)
        return cls(known_groups, known_users, *foreign)

    @property
    def own_users(self) -> frozenset[str]:
        """Those of the host itself."""
        return frozenset(self.users) - self.foreign_users


def host_of(present: Present, before: Mapping[str, Any]) -> Host:
    """What is compared with what was given before. No command of the host takes from a directory's groups."""
    own = {name: entry.gr_mem for name, entry in present.groups.items() if name not in present.foreign_groups}
    others = frozenset(before.get("accounts", {})) - present.own_users
    foreign = frozenset(filter(_is_known, others))
    return Host(own, present.own_users, os.environ.get("SUDO_USER", ""), foreign)


def _is_known(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _names(file: Path) -> frozenset[str]:
    lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return frozenset(line.partition(":")[0] for line in lines)


def with_own_groups(
    groups: Sequence[Mapping[str, Any]], accounts: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The groups, and one of its own for each account that names no group."""
    declared = {group["name"] for group in groups}
    own = [
        {"name": user["name"], "gid": user["uid"], "state": "present"}
        for user in accounts
        if user["state"] == "present" and not user.get("group") and user["name"] not in declared
    ]
    return [*groups, *own]


def clashes(wanted: Mapping[str, int], present: Mapping[str, int], identity: str) -> list[str]:
    """Names that have another id on this host, and ids that belong to another name."""
    owners = {number: name for name, number in present.items()}
    found = []
    for name, number in wanted.items():
        if name in present and present[name] != number:
            found.append(f"{name} has {identity} {present[name]} on this host, not {number}")
        elif name not in present and number in owners:
            found.append(f"{identity} {number}, wanted for {name}, belongs to {owners[number]} on this host")
    return found


def group_commands(groups: Sequence[Mapping[str, Any]], present: Present) -> list[list[str]]:
    """The commands that create missing groups."""
    return [
        ["groupadd", "--gid", str(group["gid"]), group["name"]]
        for group in groups
        if group["state"] == "present" and group["name"] not in present.groups
    ]


def removals(
    groups: Sequence[Mapping[str, Any]], accounts: Sequence[Mapping[str, Any]], present: Present
) -> list[list[str]]:
    """The commands that remove what is declared absent, accounts before their groups."""
    users = [u["name"] for u in accounts if u["state"] == "absent" and u["name"] in present.own_users]
    own_groups = present.groups.keys() - present.foreign_groups
    gone = [g["name"] for g in groups if g["state"] == "absent" and g["name"] in own_groups]
    # userdel takes the group of the same name along.
    return [["userdel", name] for name in users] + [["groupdel", name] for name in gone if name not in users]


def account_commands(accounts: Sequence[Mapping[str, Any]], present: Present) -> list[list[str]]:
    """The commands that create missing accounts and change those that differ; none touches a home."""
    commands = []
    for user in accounts:
        if user["state"] != "present":
            continue
        name, entry = user["name"], present.users.get(user["name"])
        missing = _missing_groups(user, present)
        if entry is None:
            commands.append(["useradd", "--no-create-home", *_create(user), name])
        elif name in present.foreign_users:
            # Groups of the host may have whomever it knows.
            own = [group for group in missing if group not in present.foreign_groups]
            commands += [["gpasswd", "--add", name, group] for group in own]
        else:
            options = _change(user, entry, present)
            options += ["--append", "--groups", ",".join(missing)] if missing else []
            commands += [["usermod", *options, name]] if options else []
            # By itself, because it is refused while somebody is there.
            commands += [["usermod", _HOME, home_of(user), name]] if entry.pw_dir != home_of(user) else []
    return commands


def run(module: AnsibleModule, commands: Sequence[Sequence[str]]) -> list[str]:
    """Runs them; returns what has to wait until nobody uses it any more. An account that waits is closed."""
    pending = []
    for command in commands:
        code, _, err = module.run_command(command)
        if code == _IN_USE and command[0] == "userdel":
            module.run_command(["usermod", *_CLOSED, command[-1]], check_rc=True)
            pending.append(
                f"account {command[-1]}: closed, and not removed yet, because processes of it run; end them "
                f"(scancel --user={command[-1]}; loginctl terminate-user {command[-1]})"
            )
        elif code == _IN_USE and _HOME in command:
            pending.append(
                f"account {command[-1]}: its home is not {command[-2]} yet, because processes of it run; end "
                f"them (scancel --user={command[-1]}; loginctl terminate-user {command[-1]})"
            )
        elif code == _IN_USE and command[0] == "groupdel":
            pending.append(f"group {command[-1]}: not removed yet, because it is an account's first group")
        elif code != 0:
            module.fail_json(msg=f"{' '.join(command)}: {err.strip()}")
    return pending


def home_of(user: Mapping[str, Any]) -> str:
    """The home directory of an account."""
    return str(user.get("home") or f"/home/{user['name']}")


def _create(user: Mapping[str, Any]) -> list[str]:
    # A "*" can never be typed as a password, yet unlike "!" it does not lock the account for ssh keys.
    options = ["--uid", str(user["uid"]), "--gid", user.get("group") or user["name"], "--password", "*"]
    options += ["--shell", user["shell"], "--home-dir", home_of(user), "--comment", user["comment"]]
    return options + (["--groups", ",".join(user["groups"])] if user["groups"] else [])


def _change(user: Mapping[str, Any], entry: pwd.struct_passwd, present: Present) -> list[str]:
    options = []
    primary = user.get("group") or user["name"]
    if primary not in present.groups or present.groups[primary].gr_gid != entry.pw_gid:
        options += ["--gid", primary]
    if entry.pw_shell != user["shell"]:
        options += ["--shell", user["shell"]]
        # One that was closed, and is wanted again.
        options += ["--expiredate", ""] if entry.pw_shell == _NO_SHELL else []
    if entry.pw_gecos != user["comment"]:
        options += ["--comment", user["comment"]]
    return options


def _missing_groups(user: Mapping[str, Any], present: Present) -> list[str]:
    primary = user.get("group") or user["name"]
    return [
        name
        for name in user["groups"]
        if name != primary and (name not in present.groups or user["name"] not in present.groups[name].gr_mem)
    ]


def slurm_commands(uid: int, gid: int, present: Present) -> list[list[str]]:
    """The commands that create the slurm group and user."""
    commands = []
    if SLURM not in present.groups:
        commands.append(["groupadd", "--system", "--gid", str(gid), SLURM])
    if SLURM not in present.users:
        options = ["--system", "--uid", str(uid), "--gid", SLURM, "--no-create-home"]
        options += ["--home-dir", "/nonexistent", "--shell", _NO_SHELL]
        commands.append(["useradd", *options, SLURM])
    return commands


def authorized(text: str, keys: Sequence[str]) -> str:
    """The text of an authorized_keys file with the kept block brought up to date."""
    if text and not text.endswith("\n"):
        text += "\n"
    lines = "".join(f"{key.strip()}\n" for key in keys)
    block = f"{BEGIN}\n{lines}{END}\n" if keys else ""
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: block, text, count=1)
    return text + block


def place_keys(home: str, keys: Sequence[str], *, write: bool) -> bool:
    """Brings authorized_keys below a home up to date, as its owner; returns whether it differed.

    What is no file that sshd could read is put aside. Raises OSError.
    """
    try:
        with opened(home) as place:
            with suppress(FileExistsError):
                if keys and write:
                    os.mkdir(_KEYS.parent, 0o700, dir_fd=place)
            with opened(str(_KEYS.parent), place) as directory:
                return _keep_keys(directory, keys, write=write)
    except FileNotFoundError:
        if keys and write:
            raise
        return bool(keys)


def _keep_keys(directory: int, keys: Sequence[str], *, write: bool) -> bool:
    before, is_unfit = "", False
    try:
        before = read_small(_KEYS.name, directory)
    except FileNotFoundError:
        pass
    except UnfitError:
        if not keys:
            return False  # nothing of this role's is there to be taken away
        is_unfit = True
    after = authorized(before, keys)
    if write and is_unfit:
        os.rename(_KEYS.name, _ASIDE, src_dir_fd=directory, dst_dir_fd=directory)
    if write and before != after:
        replace_small(_KEYS.name, after, directory)
    return before != after


def _key_works(accounts: Sequence[Mapping[str, Any]], *, write: bool) -> Iterator[Work]:
    for user in accounts:
        try:
            entry = pwd.getpwnam(user["name"])
        except KeyError:
            continue  # in a check it is yet to be made, whose home may be there from before
        do = partial(place_keys, home_of(user), user["ssh_keys"], write=write)
        yield Work(f"ssh keys of {user['name']}", home_of(user), entry.pw_uid, entry.pw_gid, do)


def make_directory(path: Path, uid: int, gid: int, mode: str, skeleton: str = "", *, write: bool) -> bool:
    """Makes an account's directory, with copies of what lies in a skeleton; returns whether it was missing.

    It appears whole, whenever this ends. Raises OSError, also where others than root could put something in
    the place of what root has just made.
    """
    if path.is_dir():
        return False
    if write:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        above = path.parent.stat()
        if above.st_uid != 0 or (above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX):
            raise PermissionError(errno.EPERM, "others than root may rename what is there", str(path.parent))
        new = path.with_name(f".{path.name}.new-by-deploy")
        if new.is_dir():
            shutil.rmtree(new)
        new.mkdir(mode=0o700)
        for source in Path(skeleton).iterdir() if skeleton and Path(skeleton).is_dir() else ():
            _copy(source, new / source.name)
        for place, directories, files in os.walk(new):
            for name in (*directories, *files):
                os.chown(Path(place) / name, uid, gid, follow_symlinks=False)
        os.chown(new, uid, gid)
        new.chmod(int(mode, 8))
        new.rename(path)
    return True


def _copy(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def skeleton_of(defaults: str) -> str:
    """Where the files of new homes are, from what ``useradd --defaults`` prints (useradd(8))."""
    said = dict(line.partition("=")[::2] for line in defaults.splitlines())
    return said.get("SKEL") or "/etc/skel"


def _directory_works(
    accounts: Sequence[Mapping[str, Any]],
    directories: Sequence[str],
    mode: str,
    skeleton: str,
    *,
    write: bool,
) -> Iterator[Work]:
    for user in accounts:
        gid = grp.getgrnam(user.get("group") or user["name"]).gr_gid if write else 0
        make = partial(make_directory, uid=user["uid"], gid=gid, mode=mode, write=write)
        home = home_of(user)
        yield Work(f"home {home}", home, 0, 0, partial(make, Path(home), skeleton=skeleton))
        for path in (Path(place) / user["name"] for place in directories):
            yield Work(f"directory {path}", str(path), 0, 0, partial(make, path))


def without_unmounted(
    works: Sequence[Work], mounts: Sequence[str], there: Sequence[str]
) -> tuple[list[Work], list[str]]:
    """The works but those below a place where a file system is yet to be mounted, and these places.

    What was made there before, the file system would hide.
    """
    kept, awaited = [], []
    for work in works:
        above = [place for place in mounts if PurePosixPath(work.path).is_relative_to(place)]
        place = max(above, key=lambda place: len(PurePosixPath(place).parts), default="")
        if place and os.path.normpath(place) not in there:
            awaited.append(place)
        else:
            kept.append(work)
    return kept, list(dict.fromkeys(awaited))


def _arguments() -> dict[str, Any]:
    state = {"type": "str", "choices": ["present", "absent"], "default": "present"}
    name = {"type": "str", "required": True}
    return {
        "slurm_uid": {"type": "int", "required": True},
        "slurm_gid": {"type": "int", "required": True},
        "groups": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {"name": name, "gid": {"type": "int", "required": True}, "state": state},
        },
        "accounts": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "name": name,
                "uid": {"type": "int", "required": True},
                "group": {"type": "str"},
                "groups": {"type": "list", "elements": "str", "default": []},
                "shell": {"type": "str", "default": "/bin/bash"},
                "comment": {"type": "str", "default": ""},
                "home": {"type": "str"},
                "ssh_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
                "state": state,
            },
        },
        "create_home": {"type": "bool", "default": True},
        "directories": {"type": "list", "elements": "path", "default": []},
        "mounts": {"type": "list", "elements": "path", "default": []},
        "home_mode": {"type": "str", "default": "0700"},
    }


def main() -> None:
    """Refuse what would go wrong, then run the few commands that are needed."""
    module = AnsibleModule(argument_spec=_arguments(), supports_check_mode=True)
    given = module.params
    accounts = given["accounts"]
    groups = with_own_groups(given["groups"], accounts)
    if found := problems(groups, accounts):
        module.fail_json(msg="; ".join(found))
    present = Present.read([group["name"] for group in groups], [user["name"] for user in accounts])
    found = clashes(
        {SLURM: given["slurm_gid"]} | {g["name"]: g["gid"] for g in groups if g["state"] == "present"},
        {name: entry.gr_gid for name, entry in present.groups.items()},
        "gid",
    ) + clashes(
        {SLURM: given["slurm_uid"]} | {u["name"]: u["uid"] for u in accounts if u["state"] == "present"},
        {name: entry.pw_uid for name, entry in present.users.items()},
        "uid",
    )
    if found:
        module.fail_json(
            msg="; ".join(found) + ". Ids are not changed by this role, because files belong to them; "
            "declare other ids, or change them by hand with usermod, groupmod and chown"
        )
    before = given_before(_REMEMBERED)
    host = host_of(present, before)
    commands = [
        *revocations(accounts, before, host),
        *slurm_commands(given["slurm_uid"], given["slurm_gid"], present),
        *removals(groups, accounts, present),
        *group_commands(groups, present),
        *account_commands(accounts, present),
    ]
    pending: list[str] = []
    if not module.check_mode:
        remember(_REMEMBERED, meanwhile(accounts, before))
        pending += run(module, commands)
    actions = [" ".join(command) for command in commands]
    keys: list[str] = []
    if given["create_home"]:
        here = [user for user in accounts if user["state"] == "present"]
        keyless = [
            {"name": name, "home": before["accounts"][name]["home"], "ssh_keys": []}
            for name in former(accounts, before, host)
        ]
        write = not module.check_mode
        skeleton = skeleton_of(module.run_command(["useradd", "--defaults"])[1])
        works = [
            *_directory_works(here, given["directories"], given["home_mode"], skeleton, write=write),
            *_key_works([*here, *keyless], write=write),
        ]
        works, awaited = without_unmounted(works, given["mounts"], [mount.path for mount in mounted()])
        if write:
            pending += [f"what people have below {place}: nothing is mounted there yet" for place in awaited]
        outcomes = as_owners(works)
        actions += [name for name, outcome in outcomes.items() if outcome.value]
        pending += [f"{name}: {outcome.problem}" for name, outcome in outcomes.items() if outcome.problem]
        keys = [f"{home_of(user)}/{_KEYS}" for user in here if user["ssh_keys"]]
    if not module.check_mode:
        remember(_REMEMBERED, remembered(accounts, before, host))
    module.exit_json(
        changed=bool(actions),
        actions=actions,
        diff={"before": "", "after": "".join(f"{action}\n" for action in actions)},
        deploy_manages={
            "users": [SLURM, *(user["name"] for user in accounts)],
            "groups": [SLURM, *(group["name"] for group in groups)],
            "files": keys,
        },
        deploy_pending=pending,
    )


if __name__ == "__main__":
    main()
