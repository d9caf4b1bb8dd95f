"""Nodes that are drained, proven by jobs of the validation user before anybody else's begin there."""

from collections.abc import Callable, Collection

from deploy.engine.drains import Ledger
from deploy.engine.run import Run
from deploy.engine.validation import failing_jobs
from deploy.plan.validation_vars import validation_user
from deploy.site.node_lists import fold


def by_jobs(
    run: Run,
    ledger: Ledger,
    names: Collection[str],
    why: str,
    say: Callable[[str], None],
    *,
    burn_in_hours: float = 0.0,
) -> dict[str, str]:
    """Nodes that were drained for a reason, on which jobs find something wrong, with what it is.

    Jobs are run where nobody else holds the node; ``say`` hears where none can be. Raises DeployError where
    the controller does not answer, or a validation is at work.
    """
    user = validation_user(run.site)
    if user is None:
        say(f"{fold(names)}: no jobs of deploy validate, because users_validation is not set")
        return {}
    with ledger.lent(names, why, user) as (reservation, lent):
        if held := [name for name in names if name not in lent]:
            say(f"{fold(held)}: no jobs of deploy validate, because others hold it drained")
        if not lent:
            return {}
        loaded = f", and load for {burn_in_hours:g} h" if burn_in_hours else ""
        say(f"{fold(lent)}: jobs of deploy validate{loaded}")
        found = failing_jobs(run, lent, reservation, burn_in_hours=burn_in_hours)
        return {name: "; ".join(said) for name, said in found.items()}
