"""The converged rerun: `deploy cluster` against `ansible-playbook` on the same playbooks and machines."""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.content import playbook, roles
from deploy.run.settings import Settings, ansible_environment
from tests.bench.commands import BenchError, Finished, run
from tests.bench.figures import Measured
from tests.bench.lab import BenchLab

Way = Callable[[], float]
"""Runs something once and returns its seconds."""

_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Rerun:
    """The ways to run the playbooks once more; each returns its seconds, or raises when something changed."""

    lab: BenchLab

    def by_deploy(self) -> float:
        """`deploy cluster`, as an admin types it in a script."""
        return self.deployed().seconds

    def by_full_deploy(self) -> float:
        """The same, without the shortcut for what is as it was recorded."""
        return self.deployed("--full").seconds

    def deployed(self, *options: str) -> Finished:
        """`deploy cluster` with options."""
        finished = deploy_cluster(self.lab, *options)
        hosts = report(self.lab)["hosts"]
        self._check("deploy cluster", {name: host["changed"] for name, host in hosts.items()})
        return finished

    def by_plain_ansible(self) -> float:
        """`ansible-playbook` with nothing set but where the roles and modules lie."""
        config = self.lab.place / "ansible.cfg"
        library = playbook("cluster").parent / "library"
        config.write_text(
            f"[defaults]\nroles_path = {roles()}\nlibrary = {library}\nhost_key_checking = True\n",
            encoding="utf-8",
        )
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        return self._by_ansible("ansible-playbook", {**environment, "ANSIBLE_CONFIG": str(config)})

    def by_tuned_ansible(self) -> float:
        """`ansible-playbook` with exactly the settings that deploy gives it."""
        settings = Settings(hosts=len(self.lab.addresses))
        return self._by_ansible("ansible-playbook with deploy's settings", ansible_environment(settings))

    def _by_ansible(self, name: str, environment: Mapping[str, str]) -> float:
        # The first run had everything to do, so its generated names all hosts in all phases.
        generated = min((self.lab.site / ".deploy" / "runs").glob("*/generated.json"))
        command = [str(Path(sys.executable).parent / "ansible-playbook")]
        command += ["--inventory", str(self.lab.inventory), "--inventory", str(generated)]
        command += ["--extra-vars", f"@{self.lab.site / 'secrets.yml'}", str(playbook("cluster"))]
        finished = run(command, environment=environment, directory=self.lab.place)
        self._check(name, changes_in_recap(finished.text))
        return finished.seconds

    def _check(self, name: str, changed: Mapping[str, int]) -> None:
        if changed != dict.fromkeys(self.lab.addresses, 0):
            raise BenchError(name, f"changes of a converged rerun must be 0 on every host, but: {changed}")


def deploy_cluster(lab: BenchLab, *options: str) -> Finished:
    """`deploy cluster` on the lab."""
    command = [*lab.deploy, "cluster", str(lab.inventory), "--output", "plain", "--no-validate", *options]
    return run(command, environment=lab.environment)


def report(lab: BenchLab) -> dict[str, Any]:
    """`deploy report --json` of the last run."""
    said = run([*lab.deploy, "report", str(lab.inventory), "--json"], environment=lab.environment)
    answer: dict[str, Any] = json.loads(said.text)
    return answer


def changes_in_recap(text: str) -> dict[str, int]:
    """Host -> changes and failures, from the recap that ansible-playbook prints."""
    return {host: sum(map(int, counts)) for host, *counts in _RECAP.findall(text)}


def in_turn(ways: Mapping[Measured, Way], number: int) -> list[tuple[Measured, Way]]:
    """The ways in another order each round, so that none always has the same one before it."""
    listed = [*ways.items()]
    start = number % len(listed)
    return [*listed[start:], *listed[:start]]
