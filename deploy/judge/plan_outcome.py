"""What a look ahead came to: what a run would do, how far that is known, and the exit code it means."""

from dataclasses import dataclass

from deploy.errors import ExitCode
from deploy.judge.preview import Preview
from deploy.judge.summary import Outcome, Summary


@dataclass(frozen=True)
class PlanOutcome:
    """What a run would do, and what came of asking."""

    preview: Preview
    summary: Summary

    @property
    def exit_code(self) -> ExitCode:
        """What could not be previewed comes before what is pending."""
        if self.summary.outcome is not Outcome.CONVERGED:
            return self.summary.exit_code
        return ExitCode.CHANGES_PENDING if self.preview.changes else ExitCode.OK
