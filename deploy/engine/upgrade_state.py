"""How far an upgrade of Slurm is: what hosts say of themselves, and the controller of nodes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deploy.engine.drains import Ledger
from deploy.engine.run import Run
from deploy.errors import DeployError, ExitCode, Finding, error
from deploy.judge.leading import standing_troubles
from deploy.judge.upgrade_route import is_of
from deploy.plan.validation_vars import validation_user
from deploy.run.ssh import Unanswered, ask
from deploy.site.hardware import Contract, read_contract
from deploy.site.inventory import Host


@dataclass(frozen=True)
class State:
    """The hosts of a site that wants another Slurm; of before nothing is remembered but their versions."""

    run: Run

    @cached_property
    def wanted(self) -> str:
        """What the site says. Raises DeployError where it says nothing, or more than one thing."""
        said = {str(host.value("slurm_packages_version")) for host in self.run.site.cluster}
        if said == {""}:
            raise error(
                "upgrade-not-wanted",
                "the site does not say which Slurm it wants",
                where=self.run.inventory,
                hint="set slurm_packages_version, and slurm_packages_repository if hosts' sources lack it",
            )
        if len(said) > 1:
            raise error(
                "upgrade-versions-differ",
                f"hosts of one cluster want different versions: {', '.join(sorted(said))}",
                where=self.run.inventory,
                hint="set slurm_packages_version once, in group_vars/all.yml",
            )
        return said.pop()

    @cached_property
    def before(self) -> dict[str, str]:
        """By host the version of Slurm that it had when this began."""
        found = {name: said["packages"] for name, said in self.looks().items()}
        # What dpkg left half done, as where an upgrade was cut off, has no version.
        return {name: of.get("slurm-client") or next(iter(of.values()), "") for name, of in found.items()}

    @cached_property
    def contract(self) -> Contract:
        """The hardware of the nodes."""
        return read_contract(self.run.site)

    @cached_property
    def user(self) -> str | None:
        """Whose jobs bear witness."""
        return validation_user(self.run.site)

    @cached_property
    def ledger(self) -> Ledger:
        """The drains of nodes."""
        return Ledger(self.run.site, self.run.options)

    @property
    def why(self) -> str:
        """The reason of this upgrade's drains; one that found a node bad begins with it."""
        return f"upgrade to Slurm {self.wanted}"

    @property
    def left(self) -> list[str]:
        """The hosts that are not there yet, in the inventory's order."""
        return self.left_of(self.run.site.cluster)

    def left_of(self, hosts: Collection[Host]) -> list[str]:
        """Those of some hosts with another version, a daemon that does not run it, or a drain of this."""
        looks, held = self.looks([host.name for host in hosts]), self.held()
        # One that never had Slurm is a new host's, and the next run of `deploy cluster` brings it.
        known = {name: said for name, said in looks.items() if said["packages"] or said["broken"]}
        return [name for name, said in known.items() if name in held or not self._is_there(said)]

    def held(self) -> set[str]:
        """The nodes that an upgrade to this release drained; none where the controller is silent."""
        try:
            nodes = self.ledger.nodes()
        except DeployError:
            return set()
        return {node.name for node in nodes if any(each.why.startswith(self.why) for each in node.drains)}

    def _is_there(self, said: Mapping[str, Any]) -> bool:
        packages, daemons = said["packages"], said["daemons"]
        are_new = packages and all(is_of(version, self.wanted) for version in packages.values())
        is_whole = bool(are_new) and not said["broken"] and not said["plugin_waits"]
        return is_whole and all(state == "active" for state in daemons.values())

    def looks(self, names: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
        """What hosts say of their packages and daemons. Raises DeployError where one does not answer."""
        chosen = [host.name for host in self.run.site.cluster if names is None or host.name in names]
        answers = ask(
            {name: ("look", {}) for name in chosen},
            self.run.site.hosts,
            self.run.options.login,
            self.run.options.forks,
            "slurm_look",
        )
        silent = [
            Finding(name, "host-silent", f"it does not answer: {answer.why}", self.run.command("check"))
            for name, answer in answers.items()
            if isinstance(answer, Unanswered)
        ]
        if silent:
            raise DeployError(*silent, exit_code=ExitCode.UNREACHABLE)
        return answers

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - as the verb wants them
        """What the controller answers to a verb of ``run/slurm_look.py``.

        Raises DeployError ``controller-silent``.
        """
        return self._ask("slurm_look", verb, arguments)

    def standing(self) -> dict[str, str]:
        """How each of several controllers stands, as the first one sees them. Raises as ``ask`` does."""
        answer = self._ask("leading", "stand", {})
        names = {host.name for host in self.run.site.controllers}
        return {name: str(said["stands"]) for name, said in answer.items() if name in names}

    def _ask(self, source: str, verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        controller = self.run.site.controller.name
        asked = {controller: (verb, arguments)}
        answer = ask(asked, self.run.site.hosts, self.run.options.login, source=source)[controller]
        if isinstance(answer, Unanswered):
            raise error(
                "controller-silent",
                f"it does not answer: {answer.why}",
                where=controller,
                hint=self.run.command("status"),
                exit_code=ExitCode.UNREACHABLE,
            )
        return dict(answer)

    def troubles(self, names: Collection[str], *, is_new: bool = False) -> dict[str, str]:
        """By host what is wrong: daemons or nodes that do not answer, or are not of the new release."""
        said = self.ask("gate")
        controller = self.run.site.controller.name
        silent = [f"{unit}: {said[unit]}" for unit in ("slurmdbd", "slurmctld") if said[unit]]
        bad = {controller: "; ".join(silent)} if silent else {}
        if len(self.run.site.controllers) > 1 and not silent:
            bad |= dict(standing_troubles(self.standing()))
        for name in names:
            node = said["nodes"].get(name)
            if node is None:
                bad[name] = "Slurm does not know it"
            elif not node["answers"] or "DOWN" in node["states"]:
                bad[name] = f"its slurmd does not answer ({'+'.join(node['states']).lower()})"
            elif is_new and not is_of(node["version"], self.wanted):
                bad[name] = f"it registered as Slurm {node['version'] or 'unknown'}"
        return bad
