"""What a check says of a host or of the whole site, and on what grounds."""

from dataclasses import dataclass
from enum import StrEnum

from deploy.errors import ExitCode


class Outcome(StrEnum):
    """How a check ended; only PASSED is a proof of anything."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_MEASURED = "not measured"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Result:
    """What a check says of ``where``: a host, a partition …; empty for the whole site.

    ``message`` says what was seen, and why it is so where it is not as expected; ``expected`` what was
    promised, and by whom; ``hint`` the next thing to type. A measurement has a ``value`` and its ``unit``;
    less is better, but for a rate.
    """

    outcome: Outcome
    message: str
    where: str = ""
    expected: str = ""
    hint: str = ""
    value: float | None = None
    unit: str = ""
    is_rate: bool = False


def passed(message: str, where: str = "", **more: float | str | bool) -> Result:
    """It was measured, and is as promised."""
    return Result(Outcome.PASSED, message, where, **more)  # type: ignore[arg-type]


def failed(message: str, where: str = "", **more: float | str | bool) -> Result:
    """It was measured, and is not as promised."""
    return Result(Outcome.FAILED, message, where, **more)  # type: ignore[arg-type]


def not_measured(message: str, where: str = "") -> Result:
    """It could not be looked at, for a reason that is no fault of what is checked."""
    return Result(Outcome.NOT_MEASURED, message, where)


def not_applicable(message: str, where: str = "") -> Result:
    """The site promises nothing of the kind."""
    return Result(Outcome.NOT_APPLICABLE, message, where)


@dataclass(frozen=True)
class Judged:
    """A check with all its results."""

    check: str
    proves: str
    results: tuple[Result, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst of the results; NOT_MEASURED where there is none."""
        found = {result.outcome for result in self.results}
        order = (Outcome.FAILED, Outcome.NOT_MEASURED, Outcome.PASSED, Outcome.NOT_APPLICABLE)
        return next((outcome for outcome in order if outcome in found), Outcome.NOT_MEASURED)

    def of(self, outcome: Outcome) -> tuple[Result, ...]:
        """The results that ended so."""
        return tuple(result for result in self.results if result.outcome is outcome)


@dataclass(frozen=True)
class Validation:
    """All checks of a cluster; ``began`` in seconds since the epoch, ``seconds`` is what they took.

    ``unreachable`` are the hosts that could not be asked, whichever checks were chosen.
    """

    cluster: str
    began: float
    seconds: float
    checks: tuple[Judged, ...]
    unreachable: tuple[str, ...] = ()

    def ended(self, outcome: Outcome) -> tuple[Judged, ...]:
        """The checks that ended so."""
        return tuple(check for check in self.checks if check.outcome is outcome)

    @property
    def failed(self) -> tuple[Judged, ...]:
        """The checks that found something wrong."""
        return self.ended(Outcome.FAILED)

    @property
    def exit_code(self) -> ExitCode:
        """What failed decides, then who could not be asked; when nothing passed, nothing was proved."""
        if self.failed or not self.ended(Outcome.PASSED):
            return ExitCode.FAILED
        return ExitCode.UNREACHABLE if self.unreachable else ExitCode.OK
