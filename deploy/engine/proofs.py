"""What a cluster does for its users before a change and after it: quick validation, and what users type."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deploy.engine.options import Options
from deploy.engine.trial import SECONDS, Trial, type_commands
from deploy.engine.validation import validate_site
from deploy.errors import ExitCode
from deploy.judge.user_outcome import Change, changes
from deploy.site.inventory import read_site
from deploy.site.user_commands import default_file, read_user_commands
from deploy.site.variables import read_extra_variables
from deploy.validate.catalog import CHECKS, ordinary
from deploy.validate.comparison import Comparison, compare
from deploy.validate.record import as_data
from deploy.validate.result import Validation


@dataclass(frozen=True)
class Proof:
    """What was found at one time; of users' commands nothing where none were typed."""

    validation: Validation
    trial: Trial | None = None

    @property
    def exit_code(self) -> ExitCode:
        """OK where the cluster is as it should be; what was typed is compared, and not judged."""
        return self.validation.exit_code


@dataclass(frozen=True)
class Proofs:
    """Before and after; ``before`` is missing where a change that was cut off goes on."""

    after: Proof
    before: Proof | None = None

    @property
    def since(self) -> Comparison | None:
        """What the validation found otherwise than before."""
        return compare(as_data(self.before.validation), self.after.validation) if self.before else None

    @property
    def commands(self) -> tuple[Change, ...] | None:
        """The users' commands that came out otherwise; None where they were not typed twice."""
        if self.before is None or self.before.trial is None or self.after.trial is None:
            return None
        was, now = (
            {outcome.id: asdict(outcome) for outcome in trial.outcomes}
            for trial in (self.before.trial, self.after.trial)
        )
        return tuple(changes(was, now))

    @property
    def exit_code(self) -> ExitCode:
        """FAILED where the cluster is not as it should be, or a command of users comes out otherwise."""
        return ExitCode.FAILED if self.commands else self.after.exit_code

    def as_data(self) -> dict[str, Any]:
        """For programs."""
        commands = self.commands
        return {
            "before": as_data(self.before.validation) if self.before else None,
            "after": as_data(self.after.validation),
            "changes": [asdict(change) for change in self.since.changes] if self.since else None,
            "commands": [asdict(change) for change in commands] if commands is not None else None,
        }


def prove(
    inventory: Path, options: Options, *, types_commands: bool, progress: Callable[[str], None]
) -> Proof:
    """Validates a site quickly, and has its users' commands typed. Raises DeployError where it cannot."""
    validation = validate_site(inventory, options, ordinary(CHECKS), is_quick=True, progress=progress)
    if not types_commands:
        return Proof(validation)
    site = read_site(
        inventory,
        vault_password_file=options.vault_password_file,
        extra_variables=read_extra_variables(options.extra),
    )
    commands = read_user_commands(default_file(site))["commands"]
    progress("what users type")
    trial = type_commands(site, commands, options, in_containers=False, seconds=SECONDS, tell=lambda _: None)
    return Proof(validation, trial)
