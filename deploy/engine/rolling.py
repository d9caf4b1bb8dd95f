"""What ``deploy cluster --batch`` does: a change of many nodes, in batches of which each is good first."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deploy.engine.alone import nodes_on
from deploy.engine.batches import Bad, Share, Work, in_batches
from deploy.engine.cluster import Say, deploy_cluster, plan_cluster
from deploy.engine.consent import Agrees
from deploy.engine.display import Display
from deploy.engine.drains import Ledger
from deploy.engine.fit import Nodes
from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.errors import ExitCode, error, shown_path
from deploy.judge.summary import Summary
from deploy.site.node_lists import fold

_WHY = "change by deploy cluster"
_MINUTES = 2
"""A node that converged has booted, and has to register and to find its clock right."""


def deploy_in_batches(
    inventory: Path,
    options: Options,
    most: Share,
    displays: Callable[[], Display],
    agrees: Agrees,
    *,
    say: Say,
) -> Summary:
    """All other hosts first; then the compute nodes on which something changes, each batch without jobs.

    A node is released when it converged, is registered with Slurm and well. ``displays`` gives one for each
    run. Raises StoppedError at the first batch that is not good, and DeployError before anything changes.
    """
    with opened(inventory, options, needs_ansible=False) as whole, nodes_on(whole) as run:
        nodes, hosts = Nodes(Ledger(run.site, options), say), run.hosts
        changing = _changing(inventory, options, nodes, displays(), say)
        rest = [name for name in hosts if name not in changing]
        if not changing:
            return deploy_cluster(inventory, options, displays(), agrees, say)
        say(f"in batches: {fold(changing)}; before them: {fold(rest) or 'no other host'}")
        if rest:
            first = deploy_cluster(inventory, _only(options, rest), displays(), agrees, say)
            if first.exit_code is not ExitCode.OK:
                say(f"not begun, and as they were: {fold(changing)}")
                return first

        def act(batch: tuple[str, ...]) -> Bad:
            came = deploy_cluster(inventory, _only(options, batch), displays(), agrees, say)
            if came.exit_code is ExitCode.OK:
                return {}
            bad = [name for name in batch if name in came.hosts and not came.hosts[name].is_whole]
            return dict.fromkeys(bad or batch, "it did not converge: see deploy report")

        work = Work(
            "change",
            _WHY,
            act,
            lambda batch: nodes.fit(batch, {}, minutes=_MINUTES) if batch else {},
            lambda _: run.again(),
        )
        in_batches(nodes.ledger, changing, most, work, say)
    # What one host is told of all others follows when all of them are there.
    return deploy_cluster(inventory, options, displays(), agrees, say)


def _changing(inventory: Path, options: Options, nodes: Nodes, display: Display, say: Say) -> list[str]:
    """The compute nodes that serve Slurm and on which something would change, in the inventory's order.

    And those that an earlier attempt left drained. Raises DeployError where what would change is not known.
    """
    preview = plan_cluster(inventory, options, display, say).preview
    if preview.failures:
        failed = preview.failures[0]
        raise error(
            "preview-failed",
            f"what would change is not known, so no batches can be made: {failed.title}: {failed.message}",
            where=failed.host,
            hint=f"deploy plan {shown_path(inventory)}",
            exit_code=ExitCode.FAILED,
        )
    if preview.changes and not preview.is_slurm_configured:
        return []
    changes = {change.result.host for change in preview.changes}
    known = {node.name: any(it.why.startswith(_WHY) for it in node.drains) for node in nodes.ledger.nodes()}
    return [name for name in nodes.of_their_own if name in known and (name in changes or known[name])]


def _only(options: Options, names: list[str] | tuple[str, ...]) -> Options:
    return replace(options, limit=",".join(names), typed=options)
