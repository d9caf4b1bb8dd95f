"""The text of /etc/pam.d/sshd: who is let in to a compute node, and where a session runs.

Of the standard library alone: as a program, it prints what lets others in on this machine.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence

JOB_SESSION = "deploy-job-session"
"""The PAM service that sessions of jobs run instead of common-session."""

JOB_ENVIRONMENT = "/etc/security/job-environment.conf"
"""What the role user_environment gives sessions of jobs."""

_KEPT = "(kept by deploy: changes inside this block are lost)"
_ACCOUNT_BEGIN, _ACCOUNT_END = f"# BEGIN jobs' owners {_KEPT}", "# END jobs' owners"
_SESSION_BEGIN, _SESSION_END = f"# BEGIN jobs' sessions {_KEPT}", "# END jobs' sessions"
_OWNER_OF_A_JOB = "account required pam_slurm_adopt.so action_adopt_failure=deny action_generic_failure=deny"
_COMMON_SESSION = "@include common-session"

_SESSION_INCLUDE = re.compile(
    r"^(?:@include\s+common-session|session\s+(?:include|substack)\s+common-session)[ \t]*$", re.MULTILINE
)
_ACCOUNT_LINE = re.compile(r"^(?:-?account\s.*|@include\s+common-account[ \t]*)$", re.MULTILINE)
_INCLUDE = re.compile(r"@include\s+(?P<textual>\S+)|-?account\s+include\s+(?P<include>\S+)")
_ACCOUNT = re.compile(r"-?account\s+(?P<control>\[[^\]]*\]|\S+)\s+(?P<module>\S+)")
_SKIPS = re.compile(r"\bsuccess=(\d+)")
_DEEPEST = 10
_LOGIND = re.compile(r"^(?P<type>-?session)\s.*\bpam_systemd(?:_home)?\.so\b.*$", re.MULTILINE)


class NotUnderstood(ValueError):  # noqa: N818 - it is what the message says
    """The file is not like one that a distribution makes."""


def _block(begin: str, end: str) -> re.Pattern[str]:
    return re.compile(rf"^{re.escape(begin)}\n.*?^{re.escape(end)}\n", re.MULTILINE | re.DOTALL)


def unrestricted(text: str) -> str:
    """The file as it was before the role."""
    text = _block(_ACCOUNT_BEGIN, _ACCOUNT_END).sub("", text)
    return _block(_SESSION_BEGIN, _SESSION_END).sub(f"{_COMMON_SESSION}\n", text)


def admins_alone(text: str, users: Sequence[str], groups: Sequence[str]) -> str:
    """The file that lets in admins (``users``, members of ``groups``, root) and nobody else."""
    text = unrestricted(text)
    return _with_accounts(text, [*_admins(_conditions(users, groups)), "account required pam_deny.so"])


def restricted(text: str, users: Sequence[str], groups: Sequence[str], node_name: str = "") -> str:
    """The file that lets in admins, as above, and owners of jobs.

    ``node_name`` is what slurmd was told to call the node: Slurm's module would look for jobs of the
    machine's own name.
    """
    text = unrestricted(text)
    admins = _conditions(users, groups)
    includes = list(_SESSION_INCLUDE.finditer(text))
    if len(includes) != 1:
        message = "a line '@include common-session' is expected there once"
        raise NotUnderstood(message)
    session = _lines(_SESSION_BEGIN, *_session(admins), _SESSION_END).rstrip("\n")
    text = text[: includes[0].start()] + session + text[includes[0].end() :]
    owner = f"{_OWNER_OF_A_JOB} nodename={node_name}" if node_name else _OWNER_OF_A_JOB
    return _with_accounts(text, [*_admins(admins), owner])


def _with_accounts(text: str, lines: Sequence[str]) -> str:
    """Behind all lines of accounts that are there."""
    accounts = list(_ACCOUNT_LINE.finditer(text))
    if not accounts:
        message = "a line '@include common-account' is expected there once"
        raise NotUnderstood(message)
    account, end = _lines(_ACCOUNT_BEGIN, *lines, _ACCOUNT_END), accounts[-1].end()
    return f"{text[:end]}\n{account}{text[end + 1 :]}"


def job_session(common_session: str) -> str:
    """The session of a job: common-session, but nothing takes the session out of the job's cgroup."""
    head = "# Made by deploy from common-session; changes made here are undone by the next run.\n"
    # A line takes the place of each, because lines above may skip by number.
    return head + _LOGIND.sub(r"\g<type> optional pam_permit.so", common_session)


def _conditions(users: Sequence[str], groups: Sequence[str]) -> list[str]:
    """What makes somebody an admin; any of it is enough."""
    found = ["uid = 0"]
    if users:
        found.append(f"user in {':'.join(sorted(set(users)))}")
    if groups:
        found.append(f"user ingroup {':'.join(sorted(set(groups)))}")
    return found


def _admins(conditions: Sequence[str]) -> list[str]:
    return [f"account sufficient pam_succeed_if.so quiet {condition}" for condition in conditions]


def _session(admins: Sequence[str]) -> list[str]:
    """An admin's session skips to the last line; others end before it."""
    skips = range(len(admins) + 2, 2, -1)
    return [
        *(
            f"session [success={skip} default=ignore] pam_succeed_if.so quiet {condition}"
            for skip, condition in zip(skips, admins)  # noqa: B905 - hosts may have Python 3.9
        ),
        f"session substack {JOB_SESSION}",
        f"session optional pam_env.so readenv=0 conffile={JOB_ENVIRONMENT}",
        "session [success=1 default=ignore] pam_permit.so",
        "session substack common-session",
    ]


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


class _Line:
    """A line of accounts with its place; ``is_ours`` in deploy's block."""

    # Importing typing or dataclasses would take longer than all the rest.
    def __init__(self, place: str, control: str, module: str, *, is_ours: bool) -> None:
        self.place, self.control, self.module, self.is_ours = place, control, module, is_ours


def objections(read: Callable[[str], str], name: str = "sshd") -> Iterator[str]:
    """Lines of others that let somebody in before deploy's are asked, or undo what they said.

    ``read`` gives the text of a file of /etc/pam.d, or nothing. Without a block everybody may come in.
    """
    stack = list(_accounts(read, name))
    ours = [position for position, line in enumerate(stack) if line.is_ours]
    if not ours:
        return
    for position, line in enumerate(stack):
        if line.is_ours:
            continue
        skips = _SKIPS.search(line.control)
        ends = line.control == "sufficient" or "success=done" in line.control
        passes = skips and position + int(skips[1]) >= ours[0]
        if (position < ours[0] and (ends or passes)) or "=reset" in line.control:
            yield (
                f"{line.place} ({line.control} {line.module}) lets users in whom deploy's block in "
                f"/etc/pam.d/{name} would refuse: remove this line, or put it below the block"
            )


def _accounts(read: Callable[[str], str], name: str, depth: int = 0) -> Iterator[_Line]:
    """The lines of accounts, those of included files in their place; a substack ends only itself."""
    text, is_ours = read(name) if depth < _DEEPEST else "", False
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        is_ours = (is_ours or words == _ACCOUNT_BEGIN) and words != _ACCOUNT_END
        if included := _INCLUDE.match(words):
            yield from _accounts(read, included["textual"] or included["include"], depth + 1)
        elif found := _ACCOUNT.match(words):
            control = re.sub(r"\s*=\s*", "=", found["control"].lower())
            yield _Line(f"/etc/pam.d/{name}:{number}", control, found["module"], is_ours=is_ours)


def _of_this_machine(name: str) -> str:
    # Importing pathlib would take longer than all the rest.
    path = f"/etc/pam.d/{name}"
    if not os.path.isfile(path):  # noqa: PTH113
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read()


if __name__ == "__main__":
    sys.stdout.writelines(f"{objection}\n" for objection in objections(_of_this_machine))
