"""``deploy cluster`` and ``deploy plan``, from the name of an inventory on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from deploy.engine.consent import Agrees
from deploy.engine.converge import converge, look_ahead
from deploy.engine.display import Display
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.engine.secrets import refuse_new_secrets_for_some, refuse_rotation_of_others
from deploy.judge.plan_outcome import PlanOutcome
from deploy.judge.summary import Summary
from deploy.run.journal import last_run, state_directory
from deploy.run.lock import site_lock
from deploy.site.inventory import site_directory

Say = Callable[[str], None]
"""Gets what there is to say beside the run itself, line by line."""


def deploy_cluster(inventory: Path, options: Options, display: Display, agrees: Agrees, say: Say) -> Summary:
    """Everything behind the verb; raises DeployError before anything changes when the site is wrong."""
    with _site_run(inventory, options, say) as run, site_lock(state_directory(run.site.directory)):
        refuse_new_secrets_for_some(run)
        return converge(run, display, agrees)


def plan_cluster(inventory: Path, options: Options, display: Display, say: Say) -> PlanOutcome:
    """What ``deploy_cluster`` would do; changes nothing, neither on hosts nor in the site."""
    with _site_run(inventory, options, say) as run:
        return look_ahead(run, display)


@contextmanager
def _site_run(inventory: Path, options: Options, say: Say) -> Iterator[Run]:
    with opened(inventory, options, needs_ansible=_is_work_likely(inventory, options)) as run:
        refuse_rotation_of_others(run)
        for warning in run.warnings:
            say(str(warning))
        yield replace(run, say=say)


def _is_work_likely(inventory: Path, options: Options) -> bool:
    """Whether Ansible will be needed; started for nothing, it would cost a second."""
    last = last_run(site_directory(inventory))
    is_settled = last is not None and last.is_complete and set(last.converged) == set(last.hosts)
    return options.full or options.new_secrets or not options.is_whole or not is_settled
