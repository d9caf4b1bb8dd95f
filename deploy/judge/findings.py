"""What is wrong with hosts, from results of tasks: what host_check found, and what Ansible's words mean."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from deploy.errors import Finding, Severity
from deploy.run.events import Event, HostResult, Status
from deploy.run.message import DIED, one_line


@dataclass(frozen=True)
class _Meaning:
    """What a message that matches says about a host; ``hint`` may name the host and its address.

    Where ``message`` is empty, the task's own is what is told.
    """

    pattern: re.Pattern[str]
    reference: str
    message: str
    hint: str


def _meaning(pattern: str, reference: str, message: str, hint: str) -> _Meaning:
    return _Meaning(re.compile(pattern, re.IGNORECASE), reference, message, hint)


_PYTHON_MISSING = (
    "python-missing",
    "the Python that Ansible looks for is not there",
    "apt-get install python3   (on the host), or name another: ansible_python_interpreter=PATH",
)
_PYTHON_UNUSABLE = (
    "python-unusable",
    "its Python is too old, or does not start",
    "ssh {address} /usr/bin/python3 -V   (3.9 or later), or name another: ansible_python_interpreter=PATH",
)
_SSH = (
    _meaning(
        r"host key",
        "host-key-wrong",
        "its SSH host key is not the one that is known here, or none is known",
        "compare, on its console: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub; if it is right, here: "
        "ssh-keygen -R {address}; ssh {address}",
    ),
    _meaning(
        r"authentication is incorrect|permission denied \(",
        "ssh-login-refused",
        "its SSH server accepts neither the key nor the password of this user",
        "ssh -v {address}; name others with --user, --private-key or --ask-pass; a machine that was just "
        "installed: deploy bootstrap INVENTORY --limit {name} --user USER -k -K",
    ),
    _meaning(
        r"could not resolve hostname",
        "address-not-resolved",
        "its name cannot be resolved here",
        "write its address into the inventory: {name} ansible_host=ADDRESS",
    ),
    _meaning(
        r"bash.*python\S*: (no such file|command not found)",
        *_PYTHON_MISSING,
    ),
    _meaning(
        r"no message was given",
        *_PYTHON_UNUSABLE,
    ),
)
_SUDO_AND_PYTHON = (
    _meaning(
        r"sudo password is required|missing sudo password",
        "sudo-password-needed",
        "sudo asks for a password",
        "give it with --ask-become-pass (-K), or allow the user to do without: USER ALL=(ALL) NOPASSWD: ALL",
    ),
    _meaning(
        r"sudo password is incorrect|incorrect sudo password",
        "sudo-password-wrong",
        "sudo does not accept the password",
        "type it again: --ask-become-pass (-K)",
    ),
    _meaning(
        r"not in the sudoers file|may not run sudo|is not allowed to (run|execute)",
        "sudo-not-allowed",
        "the user may not use sudo there",
        "add the user to the group sudo (usermod -aG sudo USER), or name another with --user",
    ),
    _meaning(
        r"No such file or directory: 'sudo'|sudo: (command )?not found",
        "sudo-missing",
        "there is no sudo",
        "apt-get install sudo   (on the host), or log in as root: --user root",
    ),
    _meaning(
        r"the module interpreter '.*' was not found",
        *_PYTHON_MISSING,
    ),
    _meaning(
        rf"requires a minimum of python|no start of json char found|^({DIED})?SyntaxError",
        *_PYTHON_UNUSABLE,
    ),
)
# Of an exception that ended a module, what its errno says (errno(3)).
_OF_STORAGE = (
    _meaning(
        r"\[Errno (28|122)\]",
        "host-disk-full",
        "",
        "see which file system is full on {name}: df -h; df -i; free some of it, and run it again",
    ),
    _meaning(
        r"\[Errno (5|30|117)\]",
        "host-disk-broken",
        "",
        "see what the kernel says of the disk on {name}: dmesg --level=err; findmnt --options ro; once it is "
        "written to again, run it again",
    ),
)
_REPORT_IT = (
    "see to what the message names on {name}, and run it again; if that is as it should be, this is a fault "
    "of deploy: report it with what deploy report INVENTORY says"
)
_DIED = _meaning("", "module-died", "", _REPORT_IT)
_OF_THE_TASK = frozenset({"module-died", *(meaning.reference for meaning in _OF_STORAGE)})


def findings_of(result: HostResult, address: str = "") -> tuple[Finding, ...]:
    """What a result says is wrong with its host; nothing where a failure is only the task's own.

    ``address`` is where one logs in by hand, else the host's name is taken.
    """
    answered = tuple(_answered(result))
    if answered or not result.is_trouble:
        return answered
    is_unreachable = result.status is Status.UNREACHABLE
    meanings = (*_SUDO_AND_PYTHON, *_SSH) if is_unreachable else _SUDO_AND_PYTHON
    found = next((meaning for meaning in meanings if meaning.pattern.search(result.message)), None)
    if found is None and is_unreachable:
        found = _meaning("", "host-unreachable", result.message, "ssh {address}")
    if found is None and result.message.startswith(DIED):
        found = next((meaning for meaning in _OF_STORAGE if meaning.pattern.search(result.message)), _DIED)
    if found is None:
        return ()
    hint = found.hint.format(name=result.host, address=address or result.host)
    message = found.message or f"{result.title}: {result.message}"
    return (Finding(result.host, found.reference, message, hint),)


def is_refused(events: Iterable[Event]) -> bool:
    """Whether a machine was found unfit, which stops a run before it changes anything."""
    return any(
        result.is_trouble
        and result.status is Status.FAILED
        and any(finding.reference not in _OF_THE_TASK for finding in findings_of(result))
        for result in with_findings(events)
    )


def with_findings(events: Iterable[Event]) -> list[HostResult]:
    """The results that say that something is wrong with their host."""
    return [event for event in events if isinstance(event, HostResult) and findings_of(event)]


def checked(result: HostResult) -> tuple[str, ...]:
    """What host_check looked at and found right."""
    subjects = (result.answer or {}).get("checked")
    return tuple(map(one_line, subjects)) if isinstance(subjects, list) else ()


def _answered(result: HostResult) -> Iterator[Finding]:
    """The findings of host_check; texts that come from a host are cleaned."""
    found = (result.answer or {}).get("findings")
    for entry in found if isinstance(found, list) else []:
        if isinstance(entry, Mapping):
            message, hint, reference = (
                one_line(entry.get(key, "")) for key in ("message", "hint", "reference")
            )
            is_warning = entry.get("severity") == Severity.WARNING
            severity = Severity.WARNING if is_warning else Severity.ERROR
            yield Finding(result.host, reference, message, hint, severity)
