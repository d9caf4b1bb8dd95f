"""What went wrong, in the four parts an admin needs: what, where, why, what to type next."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path


class ExitCode(IntEnum):
    """Exit codes of every verb; documented in docs/cli.md."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    CHANGES_PENDING = 3
    UNREACHABLE = 4
    INTERNAL = 70
    INTERRUPTED = 130


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.OK: "done: converged, nothing to complain about, nothing to do",
    ExitCode.FAILED: "a task or a check failed on a host; what succeeded on others stays",
    ExitCode.BAD_INPUT: "the site, an option or the command line is wrong; nothing was changed",
    ExitCode.CHANGES_PENDING: (
        "a run would change something, or needs a yes that nobody gave; nothing was changed"
    ),
    ExitCode.UNREACHABLE: "a host could not be reached, or its host key is not the known one",
    ExitCode.INTERNAL: "a fault of deploy itself",
    ExitCode.INTERRUPTED: "interrupted",
}
"""What they say, for --help and docs/cli.md."""


class Severity(StrEnum):
    """Whether a finding stops the command, or is only said."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is wrong.

    ``reference`` is a stable kebab-case name, explained in docs/errors.md; ``where`` a host or ``file:line``
    (empty when neither applies), ``message`` says what is wrong and why, ``hint`` the next thing to type or
    change.
    """

    where: str
    reference: str
    message: str
    hint: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        kind = "" if self.severity is Severity.ERROR else f"{self.severity}: "
        return f"{place}{kind}{self.message} [{self.reference}]\n  -> {self.hint}"


class DeployError(Exception):
    """Stops the command: one or more findings and the exit code they mean."""

    def __init__(self, *findings: Finding, exit_code: ExitCode = ExitCode.BAD_INPUT) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings
        self.exit_code = exit_code


def error(
    reference: str,
    message: str,
    *,
    hint: str,
    where: str = "",
    exit_code: ExitCode = ExitCode.BAD_INPUT,
) -> DeployError:
    """A DeployError with a single finding."""
    return DeployError(Finding(where, reference, message, hint), exit_code=exit_code)


def internal_error(traceback_file: str) -> DeployError:
    """A fault of deploy itself; its traceback is in a file."""
    return error(
        "internal-error",
        "this is a fault of deploy itself, not of your site; what was converged stays converged",
        hint=f"running again is safe; report it with {traceback_file}",
        exit_code=ExitCode.INTERNAL,
    )


def shown_path(path: Path) -> str:
    """A path as one would type it here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
