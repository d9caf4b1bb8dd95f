"""The users' portal: a server for the validation user, as a job, in which a kernel computes."""

from collections.abc import Iterator

from deploy.plan.catalog import members
from deploy.validate.answers import PORTAL
from deploy.validate.context import Context
from deploy.validate.result import Result, failed, not_applicable, not_measured, passed


def portal(context: Context) -> Iterator[Result]:
    """It came, computed and went."""
    hosts = members(context.site, context.contract, "portal")
    if not hosts:
        yield not_applicable("the site has no portal: slurm-portal has no host")
        return
    name, said = hosts[0].name, context.answers.portal
    if said is None:
        silent = context.answers.silent.get((PORTAL, name), "it was not asked")
        yield not_measured(f"the portal could not be asked for a server: {silent}", name)
    elif said["why"]:
        hint = f"journalctl -u slurm-portal -u 'slurm-portal-helper@*' -e   (on {name}); docs/portal.md"
        yield failed(said["why"], name, hint=hint)
    else:
        yield passed(f"a server was there after {said['seconds']} s, computed, and is gone", name)
