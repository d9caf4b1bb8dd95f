"""Variables of jobs as PAM sets them in sessions that belong to a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ITEMS = {"USER": "@{PAM_USER}", "LOGNAME": "@{PAM_USER}", "HOME": "@{HOME}", "SHELL": "@{SHELL}"}
"""What sshd sets after PAM, by what PAM calls it; pam_env.conf(5)."""


def pam_environment_line(variable: Mapping[str, str]) -> str:
    """The line of pam_env.conf(5) for a ``name`` and its ``value``, in which $NAME stands for a variable."""
    escaped = re.sub(r"([\\@])", r"\\\1", variable["value"])
    return f'{variable["name"]} DEFAULT="{_REFERENCE.sub(_as_pam_says, escaped)}"'


def _as_pam_says(reference: re.Match[str]) -> str:
    name = reference[1] or reference[2]
    return _ITEMS.get(name, f"${{{name}}}")


class FilterModule:
    """What templates may use."""

    def filters(self) -> dict[str, Callable[[Mapping[str, str]], str]]:
        """The filters by name."""
        return {"pam_environment_line": pam_environment_line}
