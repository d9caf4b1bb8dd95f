#!/usr/bin/python
"""Ansible module: settings of sshd that sshd accepts, and that let this run come again."""

from __future__ import annotations

import grp
import os
import pwd
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.own_connection import connected_as, connection
from ansible.module_utils.root_file import keep, left, text_of
from ansible.module_utils.sshd_login import ANYBODY, Login, asks_what_there_is, effective, refusal
from ansible.module_utils.user_files import Work, as_owners

DOCUMENTATION = r"""
module: sshd_settings
short_description: Settings of sshd that sshd accepts, and that let this run come again
description:
  - Writes a drop-in that is read before all others, after sshd judged the whole configuration with it and the
    account that this run is connected with was found to be let in. Then sshd reads it by a reload.
  - Whether or not the drop-in changes, an ordinary user has to get every one of the settings; a Match block
    or another file that makes something else of them ends the module.
options:
  settings:
    description: Values by their names in sshd_config(5).
    type: dict
    required: true
  of_users:
    description: >-
      The same for all but admins, whatever others write. Admins keep what the account that this run is
      connected with has without.
    type: dict
    default: {}
  admin_users:
    description: Who is an admin beside root.
    type: list
    elements: str
    default: []
  admin_groups:
    description: The groups of admins.
    type: list
    elements: str
    default: []
  also_read:
    description: Further files that sshd reads when it starts or is reloaded, as far as they are there.
    type: list
    elements: path
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The file.
  type: dict
  returned: always
deploy_impact:
  description: C(kind), reconfigure or none, and C(service); how C(deploy plan) knows what a change does.
  type: dict
  returned: always
"""

_MAIN = Path("/etc/ssh/sshd_config")
_DROP_INS = Path("/etc/ssh/sshd_config.d")
_FILE = _DROP_INS / "00-deploy.conf"
_INCLUDE = re.compile(rf"^\s*Include\s+.*{re.escape(str(_DROP_INS))}/\*\.conf", re.MULTILINE | re.IGNORECASE)
_ADD_UP = frozenset(
    {"acceptenv", "denygroups", "denyusers", "hostcertificate", "hostkey", "listenaddress", "port", "setenv"}
)
"""Settings that others may add to."""
_HEAD = "# Made by deploy; changes made here are undone by the next run.\n"


class Server:
    """sshd with its configuration, the present one or one to try."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._sshd = module.get_bin_path("sshd", required=True, opt_dirs=["/usr/sbin"])
        self._settings = {name: str(value) for name, value in module.params["settings"].items()}
        self._of_users = {name: str(value) for name, value in module.params["of_users"].items()}
        self.text = _HEAD + _lines(self._settings)
        self.text += self._blocks()

    def _blocks(self) -> str:
        """What holds for users; of several Match blocks the first one that names a setting wins."""
        if not self._of_users:
            return ""
        with tempfile.TemporaryDirectory() as place:
            without = self._tried(Path(place) / "a")
        kept = {
            name: " ".join(value)
            for name, meant in self._of_users.items()
            if (value := without.get(name.lower(), [])) and value != [meant]
        }
        users = ",".join(["root", *self._module.params["admin_users"]])
        groups = ",".join(self._module.params["admin_groups"])
        of_admins = [f"User {users}", *([f"Group {groups}"] if groups else [])] if kept else []
        blocks = [*((who, kept) for who in of_admins), ("all", self._of_users)]
        return "".join(f"Match {who}\n{_lines(settings)}" for who, settings in blocks)

    def judge(self) -> None:
        """Fails, with nothing changed, when sshd refuses the settings, reads them too late, or refuses us."""
        if not _INCLUDE.search(text_of(_MAIN)):
            self._fail(f"{_MAIN} does not include {_DROP_INS}/*.conf; make that its first line")
        with tempfile.TemporaryDirectory() as place:
            settings, undisturbed = self._tried(Path(place) / "a"), self._tried(Path(place) / "b", first=True)
        for name in self._settings:
            # What adds up is there twice when it is read twice.
            if {*settings.get(name.lower(), [])} != {*undisturbed.get(name.lower(), [])}:
                self._fail(f"{name} is set above the Include of {_MAIN}, where it would win; remove it there")
        login = self._own_login(settings)
        if reason := refusal(settings, login):
            self._fail(f"{login.user!r}, with whom this run is connected, could not log in again: {reason}")

    def judge_for_others(self) -> None:
        """Fails when an ordinary user gets something else than the settings, whoever wrote it."""
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            alone = place / "alone"
            alone.write_text(self.text, encoding="utf-8")
            meant, given = self._effective(alone, ANYBODY), self._tried(place / "a", who=ANYBODY)
        for setting in self._settings:
            if setting.lower() in {name.lower() for name in self._of_users}:
                continue
            said, wanted = ({*found.get(setting.lower(), [])} for found in (given, meant))
            if not wanted <= said if setting.lower() in _ADD_UP else wanted != said:
                self._fail(
                    f"{setting} is {' '.join(sorted(said)) or 'nothing'} for ordinary users instead of "
                    f"{' '.join(sorted(wanted))}: {_others_lines(setting)}. Remove it there, or "
                    "declare it in ssh_server_parameters"
                )
        for setting, value in self._of_users.items():
            if (said := " ".join(given.get(setting.lower(), []))) != value:
                self._fail(
                    f"{setting} is {said or 'nothing'} for ordinary users instead of {value}, with which no "
                    f"session of theirs is part of a job: {_others_lines(setting)}. Remove it there"
                )
        if self._of_users and not asks_what_there_is(given):
            self._fail(
                "AuthenticationMethods asks ordinary users for what is turned off for them here "
                f"({', '.join(self._of_users)}): {_others_lines('AuthenticationMethods')}. Give them another "
                "list"
            )

    def _tried(self, place: Path, *, first: bool = False, who: str = "") -> dict[str, list[str]]:
        """What would hold for this run's account, by a copy; with ``first``, were nothing read before."""
        shutil.copytree(_DROP_INS, place)
        (place / _FILE.name).write_text(self.text, encoding="utf-8")
        main = place / "main"
        text = text_of(_MAIN).replace(str(_DROP_INS), str(place))
        main.write_text(f"Include {place / _FILE.name}\n{text}" if first else text, encoding="utf-8")
        where = connection(os.getpid()) or ("127.0.0.1", 22)
        own = f"user={connected_as()},host={where[0]},addr={where[0]},laddr=127.0.0.1,lport={where[1]}"
        return self._effective(main, who or own)

    def _effective(self, main: Path, who: str) -> dict[str, list[str]]:
        code, out, err = self._module.run_command([self._sshd, "-T", "-f", str(main), "-C", who])
        if code != 0:
            self._fail(f"sshd refuses the settings: {err.strip().replace(str(main.parent), '')}")
        return effective(out)

    def _own_login(self, settings: dict[str, list[str]]) -> Login:
        name, where = connected_as(), connection(os.getpid())
        account = pwd.getpwnam(name)
        groups = [grp.getgrgid(number).gr_name for number in os.getgrouplist(name, account.pw_gid)]
        # Without ssh, on a console or in a container, nobody needs a key to come again.
        has_key = where is None or _has_key(settings, account)
        return Login(name, groups, where[0] if where else "", has_key)

    def _fail(self, reason: str) -> None:
        self._module.fail_json(msg=f"{reason.rstrip('.')}. Nothing was changed")

    def has_read(self) -> bool:
        """Whether sshd, where it runs, started or reloaded after its files were written, ours or others'."""
        command = ["systemctl", "show", "ssh", "--property=StateChangeTimestampMonotonic", "--value"]
        since = int(self._module.run_command(command)[1].strip() or 0) / 1e6
        others = (Path(name) for name in self._module.params["also_read"])
        files = (_MAIN, _DROP_INS, *_DROP_INS.glob("*.conf"), *(path for path in others if path.exists()))
        written = max(path.stat().st_mtime for path in files)
        return written <= time.time() - time.monotonic() + since or not self.runs()

    def runs(self) -> bool:
        """Whether it does; where a socket starts it, it begins with the first connection."""
        return bool(self._module.run_command(["systemctl", "is-active", "--quiet", "ssh"])[0] == 0)

    def reload(self) -> None:
        """Has the listening process read its files again; connections have processes of their own."""
        by_socket = self._module.run_command(["systemctl", "is-active", "--quiet", "ssh.socket"])[0] == 0
        # Reloaded, sshd opens its port itself, which is systemd's then, and ends.
        # systemd refuses the sixth start in ten seconds, and nobody comes in then: it forgets earlier ones.
        verbs = ("reset-failed", "restart") if by_socket else ("reload",)
        for verb in verbs:
            self._module.run_command(["systemctl", verb, "ssh"], check_rc=True)


def _lines(settings: Mapping[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _others_lines(setting: str) -> str:
    """Where files of others speak of a setting."""
    places = [
        f"{path}:{number}"
        for path in (_MAIN, *sorted(_DROP_INS.glob("*.conf")))
        if path != _FILE
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if line.replace("=", " ").split()[:1] and line.replace("=", " ").split()[0].lower() == setting.lower()
    ]
    return f"see {', '.join(places)}" if places else f"something that {_MAIN} includes says so"


def _has_key(settings: dict[str, list[str]], account: pwd.struct_passwd) -> bool:
    if any(
        settings.get(name, ["none"]) != ["none"] for name in ("authorizedkeyscommand", "trustedusercakeys")
    ):
        return True
    names = " ".join(settings.get("authorizedkeysfile", [])).split()
    filled = (name.replace("%h", account.pw_dir).replace("%u", account.pw_name) for name in names)
    paths = [Path(account.pw_dir) / name for name in filled]
    look = Work("key", account.pw_dir, account.pw_uid, account.pw_gid, partial(_holds_one, paths))
    outcome = as_owners([look])["key"]
    # Where the home does not answer, nothing says that the account, which is connected now, came without one.
    return bool(outcome.value or outcome.problem)


def _holds_one(paths: Iterable[Path]) -> bool:
    """As sshd looks, whatever the user put there: nothing is opened."""
    return any(path.is_file() and path.stat().st_size for path in paths)


def main() -> None:
    """Compare, judge, write, reload: each only where it is needed."""
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict", "required": True},
            "of_users": {"type": "dict", "default": {}},
            "admin_users": {"type": "list", "elements": "str", "default": []},
            "admin_groups": {"type": "list", "elements": "str", "default": []},
            "also_read": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    server = Server(module)
    before = text_of(_FILE)
    differs = before != server.text
    if differs:
        server.judge()
    server.judge_for_others()
    stale = differs or not server.has_read()
    kept = keep(module, _FILE, server.text)
    if stale and server.runs() and not module.check_mode:
        server.reload()
    module.exit_json(
        changed=stale or kept,
        deploy_impact={"kind": "reconfigure" if stale else "none", "service": "ssh"},
        deploy_manages={"files": left([_FILE])},
        diff={
            "before": before,
            "after": server.text,
            "before_header": str(_FILE),
            "after_header": str(_FILE),
        },
    )


if __name__ == "__main__":
    main()
