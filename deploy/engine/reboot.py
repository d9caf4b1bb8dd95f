"""What ``deploy node reboot`` does: nodes rebooted in batches, each drained, waited for and proven."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deploy.engine.alone import alone, nodes_on
from deploy.engine.batches import Bad, Share, Work, in_batches
from deploy.engine.drains import Ledger, Node, Way, reason
from deploy.engine.fit import Nodes
from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.errors import shown_path


def reboot(
    inventory: Path,
    nodes: str,
    why: str,
    options: Options,
    *,
    most: Share,
    way: Way,
    say: Callable[[str], None],
) -> tuple[Node, ...]:
    """The nodes as they are after their reboot; some may be held by others.

    Raises DeployError before anything was drained, and StoppedError at the first batch that is not good.
    """
    with opened(inventory, options, needs_ansible=False) as run:
        ledger = Ledger(run.site, options)
        names = ledger.names(nodes)
        turn = _Turn(Nodes(ledger, say))
        turn.nodes.known(names, "reboot")
        # A run that is at work there would lose its connection. One that begins later is its admin's affair.
        with alone(run, lambda _: None, is_needed=True):
            pass
        share = () if most == Share(1) else ("--batch", str(most))
        more = ("--reason", why, *share, *way.options)
        work = Work(
            "reboot",
            reason(f"reboot: {why}"),
            turn.act,
            turn.check,
            lambda rest: f"deploy node reboot {shown_path(inventory)} {shlex.join([rest, *more])}",
            way,
        )
        with nodes_on(replace(run, say=say)) as there:
            names = there.those_on(names, "node reboot")
            return in_batches(ledger, names, most, work, say) if names else ()


class _Turn:
    """One batch at a time: what Slurm knew of its nodes before, for the proof afterwards."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._started: dict[str, str] = {}

    def act(self, batch: tuple[str, ...]) -> Bad:
        """Reboots nodes; gives those that did not."""
        self._started = {node.name: node.started for node in self.nodes.ledger.nodes(batch)}
        return self.nodes.reboot(batch)

    def check(self, batch: tuple[str, ...]) -> Bad:
        """Nodes that do not serve Slurm again, or are not well."""
        return self.nodes.fit(batch, self._started)
