"""What ``deploy upgrade --back`` does: nodes of an upgrade that halted get the release of before."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from deploy.engine.alone import alone
from deploy.engine.batches import Bad, Share, Work, in_batches
from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.engine.upgrade import Walk
from deploy.engine.upgrade_servers import compute
from deploy.engine.upgrade_state import State
from deploy.errors import DeployError, error
from deploy.judge.upgrade_route import is_of
from deploy.judge.version_skew import release, shown, understands
from deploy.plan.slurm_source import is_built
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.site.node_lists import fold


@dataclass(frozen=True)
class WentBack:
    """The nodes that have the earlier release again, and which one that is."""

    nodes: tuple[str, ...]
    release: str


def go_back(inventory: Path, options: Options, nodes: str, say: Callable[[str], None]) -> WentBack:
    """Brings compute nodes back to the release that the hosts have that were not begun; their jobs run on.

    Raises DeployError ``upgrade-no-way-back`` before anything changes, and ``batch-stopped`` where a node is
    not well with it either.
    """
    with (
        opened(inventory, options) as run,
        site_lock(state_directory(run.site.directory)),
        alone(replace(run, say=say), lambda _: None, is_needed=True),
    ):
        state = State(run)
        names = state.ledger.names(nodes)
        back = _Back(Walk(replace(run, say=say), state, Share(len(names)), drains=False), names)
        return back.whole()


@dataclass(frozen=True)
class _Back:
    """The way back of some nodes."""

    walk: Walk
    names: list[str]

    @property
    def _state(self) -> State:
        return self.walk.state

    def whole(self) -> WentBack:
        """All of it."""
        self._refuse_built()
        old = self._release()
        self._refuse_others(old)
        self.walk.refuse_short_timeout()
        earlier = self.walk.reasons(self.names)

        def act(nodes: tuple[str, ...]) -> Bad:
            self.walk.forget(nodes)
            try:
                self.walk.step("hosts", nodes, back_to=old)
            except DeployError as problem:
                return {it.where: it.message for it in problem.findings if it.where in nodes}
            return {}

        def check(nodes: tuple[str, ...]) -> Bad:
            return self.walk.waited(lambda: self._state.troubles(nodes)) if nodes else {}

        work = Work(
            f"Slurm {old}",
            f"back to Slurm {old}",
            act,
            check,
            lambda left: self.walk.run.command(f"upgrade --back {left}"),
            waits=False,
        )
        in_batches(self._state.ledger, self.names, Share(len(self.names)), work, self.walk.run.say)
        self.walk.release(earlier)
        return WentBack(tuple(self.names), old)

    def _refuse_built(self) -> None:
        """Raises DeployError where packages are built: apt has those of the wanted release alone."""
        if is_built(self.walk.run.site.controller):
            raise error(
                "upgrade-no-way-back",
                "its packages were built, and apt has those of the wanted release alone",
                where=fold(self.names),
                hint=self.walk.run.command("upgrade") + "   (it goes on)",
            )

    def _release(self) -> str:
        """That of the hosts which have another than the wanted one. Raises DeployError."""
        wanted = self._state.wanted
        others = [
            version for version in self._state.before.values() if version and not is_of(version, wanted)
        ]
        found = sorted({each for version in others if (each := release(version))})
        if not found:
            raise error(
                "upgrade-no-way-back",
                f"every host has Slurm {wanted} already, so no release of before is known",
                where=self.walk.run.inventory,
                hint="docs/upgrade.md says how a whole cluster goes back to its backup",
            )
        return shown(found[-1])

    def _refuse_others(self, old: str) -> None:
        """What is no compute node has no way back, nor is there one below a controller that is too new."""
        site = self.walk.run.site
        if others := [name for name in self.names if name not in compute(site)]:
            raise error(
                "upgrade-no-way-back",
                "only compute nodes go back one by one: slurmctld and slurmdbd have written their state and "
                "database as the new release",
                where=fold(others),
                hint="docs/upgrade.md says how they go back to their backup",
            )
        serves = release(self._state.before[site.controller.name])
        wished = release(f"{old}.0-1")
        if serves and wished and not understands(serves, wished):
            raise error(
                "upgrade-no-way-back",
                f"the controller has Slurm {shown(serves)}, which takes no node of {old}",
                where=site.controller.name,
                hint=f"go on with the upgrade: {self.walk.run.command('upgrade')}",
            )
