#!/usr/bin/python
"""Ansible module: ssh to a host for admins, and to a compute node for owners of jobs there."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.job_ssh_stack import (
    JOB_SESSION,
    NotUnderstood,
    admins_alone,
    job_session,
    restricted,
    unrestricted,
)
from ansible.module_utils.own_connection import connected_as
from ansible.module_utils.root_file import keep, left, text_of
from ansible.module_utils.sshd_login import ANYBODY, KEYBOARD, effective

DOCUMENTATION = r"""
module: job_ssh_pam
short_description: Ssh to a host for admins, and to a compute node for owners of jobs there
description:
  - Edits /etc/pam.d/sshd in marked blocks. PAM itself is asked beforehand whether the account that Ansible is
    connected with would still be let in; when it would not, nothing is changed.
options:
  admits:
    description: Who is let in besides admins; for C(everyone) the file is as it was.
    type: str
    choices: [nobody, users_with_jobs, everyone]
    required: true
  node_name:
    description: What slurmd calls this node where it is told so; empty where that is the machine's name.
    type: str
    default: ""
  admin_groups:
    description: Groups whose members are let in always.
    type: list
    elements: str
    default: []
  admin_users:
    description: Accounts that are let in always; root always is.
    type: list
    elements: str
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The files.
  type: dict
  returned: always
"""

_DIRECTORY = Path("/etc/pam.d")
_MODULE = "security/pam_slurm_adopt.so"
_LIBRARIES = ("lib", "lib64", "usr/lib", "usr/lib64", "lib/*", "usr/lib/*")

# Asks PAM for its verdict by configuration files that are not in place yet. A process of its own, because PAM
# modules may change the process that asks.
_ASK = """
import ctypes, sys
directory, user = (word.encode() for word in sys.argv[1:])
talk = ctypes.CFUNCTYPE(*[ctypes.c_int] * 2, *[ctypes.c_void_p] * 3)
class Conversation(ctypes.Structure):
    _fields_ = [("function", talk), ("data", ctypes.c_void_p)]
# Modules that were built without naming it find its functions only so.
pam = ctypes.CDLL("libpam.so.0", mode=ctypes.RTLD_GLOBAL)
handle, talker = ctypes.c_void_p(), Conversation(talk(lambda *_: 19), None)
begun = pam.pam_start_confdir(b"sshd", user, ctypes.byref(talker), directory, ctypes.byref(handle))
code = begun or pam.pam_acct_mgmt(handle, 0x8000)
pam.pam_strerror.restype = ctypes.c_char_p
print(pam.pam_strerror(handle, code).decode())
sys.exit(code != 0)
"""


def _wanted(module: AnsibleModule) -> dict[Path, str]:
    """The files and their texts; an empty text means none."""
    sshd, session = _DIRECTORY / "sshd", _DIRECTORY / JOB_SESSION
    admits, admins = module.params["admits"], (module.params["admin_users"], module.params["admin_groups"])
    if admits == "everyone":
        return {sshd: unrestricted(text_of(sshd)), session: ""}
    try:
        if admits == "nobody":
            return {sshd: admins_alone(text_of(sshd), *admins), session: ""}
        text = restricted(text_of(sshd), *admins, module.params["node_name"])
    except NotUnderstood as problem:
        module.fail_json(
            msg=f"{sshd}: {problem}. Nothing was changed; fix the file, or set job_ssh_admits: everyone"
        )
    return {session: job_session(text_of(_DIRECTORY / "common-session")), sshd: text}


def _verdict(module: AnsibleModule, wanted: Mapping[Path, str], user: str) -> str:
    """Why PAM would refuse a user with these files; empty when it would not."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "pam.d"
        shutil.copytree(_DIRECTORY, directory)
        for path, text in wanted.items():
            (directory / path.name).write_text(text, encoding="utf-8")
        python = module.get_bin_path("python3") or sys.executable
        code, out, err = module.run_command([python, "-c", _ASK, str(directory), user])
        return "" if code == 0 else (out.strip() or err.strip())


def _refuse_what_shuts_out(module: AnsibleModule, wanted: Mapping[Path, str]) -> None:
    user = connected_as()
    if reason := _verdict(module, wanted, user):
        module.fail_json(
            msg=f"{user!r}, the account that this run is connected with, could not log in again: {reason}. "
            f"Nothing was changed. Let it in always: job_ssh_admin_users: [{user}], or its group in "
            "job_ssh_admin_groups"
        )


def _refuse_what_has_no_effect(module: AnsibleModule) -> None:
    needs_module = module.params["admits"] == "users_with_jobs" and not module.check_mode
    if needs_module and not any(list(Path("/").glob(f"{place}/{_MODULE}")) for place in _LIBRARIES):
        module.fail_json(msg=f"{_MODULE} is not there. Nothing was changed; see job_ssh_packages")
    sshd = module.get_bin_path("sshd", opt_dirs=["/usr/sbin"]) or "sshd"
    code, out, _ = module.run_command([sshd, "-T", "-C", ANYBODY])
    settings = effective(out) if code == 0 else {}
    if settings.get("usepam") == ["no"]:
        module.fail_json(
            msg="sshd does not ask PAM here (UsePAM no), so anybody could log in. Set UsePAM yes"
        )
    # The role ssh_server turns it off, which a preview has not seen yet.
    if needs_module and settings.get(KEYBOARD.lower()) == ["yes"]:
        module.fail_json(
            msg=f"sshd takes keyboard-interactive from ordinary users here ({KEYBOARD} yes), and a session "
            "that begins so is no part of a job. Nothing was changed. The role ssh_server turns it off for "
            "all but admins: deploy cluster, without tags that leave it out"
        )


def main() -> None:
    """Compare the files with what they should say; put the new ones to PAM; write."""
    arguments: dict[str, Any] = {
        "admits": {"type": "str", "choices": ["nobody", "users_with_jobs", "everyone"], "required": True},
        "node_name": {"type": "str", "default": ""},
        "admin_groups": {"type": "list", "elements": "str", "default": []},
        "admin_users": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    wanted = _wanted(module)
    before = {path: text_of(path) for path in wanted}
    differing = [path for path in wanted if wanted[path] != before[path]]
    is_closed = module.params["admits"] != "everyone"
    if is_closed:
        _refuse_what_has_no_effect(module)
    if differing:
        _refuse_what_shuts_out(module, wanted)
    changed = bool(differing)
    for path, text in wanted.items():
        if text:
            changed |= keep(module, path, text)
        elif not module.check_mode:
            path.unlink(missing_ok=True)
    module.exit_json(
        changed=changed,
        deploy_manages={"files": left(path for path, text in wanted.items() if text and is_closed)},
        diff=[
            {
                "before": before[path],
                "after": wanted[path],
                "before_header": str(path),
                "after_header": str(path),
            }
            for path in differing
        ],
    )


if __name__ == "__main__":
    main()
