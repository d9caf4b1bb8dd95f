"""What unattended-upgrades and needrestart leave alone, and whether apt was told otherwise. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

BLACKLIST = "Unattended-Upgrade::Package-Blacklist"
REBOOT = "Unattended-Upgrade::Automatic-Reboot"
_HEAD = "Made by deploy; changes made here are undone by the next run.\n"
_SETTING = re.compile(r'^(?P<name>\S+?)(?:::)? "(?P<value>.*)";$', re.MULTILINE)


def apt_text(packages: Sequence[str]) -> str:
    """The file for apt: patterns for the beginning of a package's name."""
    listed = "".join(f'    "{pattern}";\n' for pattern in packages)
    return f'// {_HEAD}{BLACKLIST} {{\n{listed}}};\n{REBOOT} "false";\n'


def needrestart_text(services: Sequence[str]) -> str:
    """The file for needrestart: patterns for the beginning of a service's name."""
    return f"# {_HEAD}" + "".join(f"$nrconf{{override_rc}}{{qr(^{name})}} = 0;\n" for name in services)


def objections(dump: str, packages: Sequence[str]) -> Iterator[str]:
    """What another file of apt's takes back, by what ``apt-config dump`` says of all of them."""
    settings = [(found["name"], found["value"]) for found in _SETTING.finditer(dump)]
    known = {value for name, value in settings if name == BLACKLIST}
    if missing := [pattern for pattern in packages if pattern not in known]:
        yield f"{BLACKLIST} lacks {', '.join(missing)}"
    if packages and any(name == REBOOT and value not in {"false", "0", "no"} for name, value in settings):
        yield f"{REBOOT} is on"
