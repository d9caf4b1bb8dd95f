"""What ``deploy upgrade`` does: Slurm of the whole cluster from one release to another, while jobs run."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from deploy.engine.alone import alone
from deploy.engine.batches import Bad, Course, Share, StoppedError, Work, in_batches, next_batch
from deploy.engine.drains import Ledger, reason
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.engine.secrets import borrowed_secrets
from deploy.errors import DeployError, ExitCode, Finding, error
from deploy.judge.upgrade_outcome import Outcome, fates
from deploy.judge.upgrade_route import is_of, refuse_route
from deploy.judge.version_skew import release, shown
from deploy.plan.build import build_plan
from deploy.plan.upgrade_groups import write_step
from deploy.plan.validation_vars import validation_user
from deploy.run import slurm_look
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event, HostResult
from deploy.run.execute import execute
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.ssh import Unanswered, ask
from deploy.run.submissions import Submissions, submissions
from deploy.site.hardware import Contract, read_contract
from deploy.site.inventory import Host
from deploy.site.node_lists import fold

_BACKUPS = "/var/backups/deploy"
_PATIENCE, _PAUSE = 120.0, 1.0
_LEAST_CONVERSION = 120
_NO_ROOM, _COMPLETED = "no room", "COMPLETED"

Say = Callable[[str], None]
"""Gets what is done next, in lines."""


def upgrade(inventory: Path, options: Options, most: Share, say: Say, *, drains: bool) -> Outcome:
    """Walks the cluster to the release that the site wants; with ``drains``, nodes when they have no jobs.

    Raises DeployError: before anything changed where the way is refused (exit code 2), and at the first step
    that fails, with what was begun and what was not.
    """
    with (
        opened(inventory, options) as run,
        site_lock(state_directory(run.site.directory)),
        alone(replace(run, say=say), lambda _: None, is_needed=True),
    ):
        walk = Walk(replace(run, say=say), most, drains=drains)
        walk.refuse()
        if not walk.left:
            return Outcome(walk.wanted, walk.before, time.time() - walk.began, is_nothing=True)
        return walk.whole()


@dataclass
class Walk:
    """One upgrade. What is left to do is what hosts say of themselves, whatever an earlier one came to."""

    run: Run
    most: Share
    drains: bool
    began: float = field(default_factory=time.time)
    rehearsal: Mapping[str, Any] = field(default_factory=dict)
    backup: str = ""
    done: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def whole(self) -> Outcome:
        """All steps in their order."""
        site = self.run.site
        self.start()
        with submissions(site.logins[0], self.run.options.login, self.user) as stream:
            jobs = self.ask("jobs", but=self.user or "")
            with self.halting():
                self.fetch()
                if self.left_of(site.controllers):
                    self.rehearse()
                    self.controllers()
                self.nodes()
                self.logins()
        return self.outcome(jobs, stream)

    # What is asked.

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
        return {name: said["packages"].get("slurm-client", "") for name, said in self.looks().items()}

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
        return bool(are_new) and not said["broken"] and all(state == "active" for state in daemons.values())

    def looks(self, names: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
        """What hosts say of their packages and daemons. Raises DeployError where one does not answer."""
        chosen = [host.name for host in self.run.site.cluster if names is None or host.name in names]
        answers = ask(
            {name: ("look", {}) for name in chosen},
            self.run.site.hosts,
            self.run.options.login,
            self.run.options.forks,
            slurm_look,
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
        controller = self.run.site.controller.name
        asked = {controller: (verb, arguments)}
        answer = ask(asked, self.run.site.hosts, self.run.options.login, source=slurm_look)[controller]
        if isinstance(answer, Unanswered):
            raise error(
                "controller-silent",
                f"it does not answer: {answer.why}",
                where=controller,
                hint=self.run.command("status"),
                exit_code=ExitCode.UNREACHABLE,
            )
        return dict(answer)

    # What is done.

    def refuse(self) -> None:
        """Raises DeployError where one hop does not lead to what is wanted."""
        refuse_route(self.wanted, self.before, self.run.inventory)
        if not self.before[self.run.site.controller.name]:
            raise error(
                "upgrade-no-cluster",
                "there is no Slurm yet, so there is nothing to upgrade",
                where=self.run.site.controller.name,
                hint=f"deploy cluster {self.run.inventory}   (it installs the wanted version)",
            )

    def start(self) -> None:
        """Raises DeployError where Slurm does not answer, unless an upgrade that was cut off stopped it."""
        name = self.run.site.controller.name
        said = self.looks([name])[name]
        stopped = [unit for unit, state in said["daemons"].items() if state == "inactive"]
        if stopped or said["broken"]:
            why = (
                f"{', '.join(stopped)} stopped"
                if stopped
                else f"dpkg left {', '.join(said['broken'])} undone"
            )
            self.run.say(
                f"{name}: {why}, as an upgrade leaves it that is cut off: this one goes on from there"
            )
            self.notes.append("Slurm was stopped at the beginning, so the jobs of before are not known")
        else:
            self.gate("before the first step")

    def gate(self, when: str, names: Collection[str] = ()) -> None:
        """Raises DeployError where Slurm does not answer, or one of the nodes is not in order."""
        self.run.say(f"checks {when}")
        bad = self._waited(lambda: self._troubles(names))
        if bad:
            findings = [
                Finding(where, "upgrade-gate", f"{why}, {when}", self.run.command("status"))
                for where, why in bad.items()
            ]
            raise DeployError(*findings, exit_code=ExitCode.FAILED)

    def fetch(self) -> None:
        """The wanted release is on every host that is not there yet; on controllers it is unpacked beside."""
        controllers = self.left_of(self.run.site.controllers)
        self.run.say(f"Slurm {self.wanted} is fetched")
        self.step("prepare", controllers, slurm_stage_unpacks=True)
        self.step("prepare", [name for name in self.left if name not in controllers])

    def rehearse(self) -> None:
        """The wanted release judges the configuration, and converts a dump of the database.

        Not where it is installed already: then one that was cut off did that.
        """
        said = self.looks([self.run.site.controller.name])[self.run.site.controller.name]
        if said["broken"] or all(is_of(version, self.wanted) for version in said["packages"].values()):
            return
        controllers = [host.name for host in self.run.site.controllers]
        self.run.say(f"slurmctld {self.wanted} judges the configuration")
        self.step("judge", controllers)
        self.run.say(f"slurmdbd {self.wanted} converts a dump of the database")
        answers = self.step("rehearse", [host.name for host in self.run.site.accounting_hosts])
        self.rehearsal = next((said for said in answers.values() if "counts" in said), {})
        if self.rehearsal:
            self.run.say(_rehearsed(self.rehearsal))

    def controllers(self) -> None:
        """Both daemons of the controller; until they start again, the old packages are the way back."""
        names = self.left_of(self.run.site.controllers)
        old = release(self.before[names[0]])
        self.backup = f"{_BACKUPS}/slurm-{shown(old) if old else 'unknown'}-{time.strftime('%Y%m%d-%H%M%S')}"
        self.run.say(f"controller {fold(names)}: stops, is kept in {self.backup}, starts as {self.wanted}")
        seconds = max(_LEAST_CONVERSION, int(4 * float(self.rehearsal.get("seconds", 0))) + _LEAST_CONVERSION)
        self.forget(names)
        self.step("controllers", names, slurm_backup_directory=self.backup, slurmdbd_start_timeout=seconds)
        self.done += names
        self.gate("after the controller")

    def nodes(self) -> None:
        """One node, and when that is good the others in batches."""
        names = {host.name for host in self.run.site.nodes} - {
            host.name for host in self.run.site.controllers
        }
        most = Share(1)
        while left := [name for name in self.left if name in names]:
            partitions: dict[str, set[str]] = {}
            out = set()
            for node in self.ledger.nodes():
                out |= set() if node.is_in_service else {node.name}
                for partition in node.partitions:
                    partitions.setdefault(partition, set()).add(node.name)
            batch = next_batch(left, partitions, most, out)
            if not batch:
                raise self._nothing_to_spare(left, out)
            self._batch(batch, left)
            most = self.most

    def _nothing_to_spare(self, left: Collection[str], out: Collection[str]) -> DeployError:
        return error(
            "no-node-to-spare",
            f"no partition of theirs can spare a node at --batch {self.most}: out of service are {fold(out)}",
            where=fold(left),
            hint=f"{self.run.command('node list')}; a number goes on whatever is out: --batch 1",
            exit_code=ExitCode.FAILED,
        )

    def _batch(self, batch: tuple[str, ...], left: Collection[str]) -> None:
        rest = tuple(name for name in left if name not in batch)
        earlier = self._reasons(batch)
        long = self._witnesses("hold", nodes=[*batch]) if not self.drains else {}
        work = Work(
            f"Slurm {self.wanted}",
            self.why,
            self._change,
            self._check,
            lambda _: self.run.command("upgrade"),
            waits=self.drains,
        )
        try:
            in_batches(self.ledger, batch, Share(len(batch)), work, self.run.say)
        except StoppedError as problem:
            course = replace(problem.course, done=tuple(self.done), left=(*problem.course.left, *rest))
            raise StoppedError(course, work, exit_code=problem.exit_code) from None
        for node, reasons in earlier.items():
            for who, why in reasons:
                self.ledger.ask("resume", [node], {"names": [node], "who": who, "why": why})
        bad = self._bore_witness([*batch], long)
        for node, why in bad.items():
            self.ledger.drain([node], reason(f"{self.why}: {why}"))
        self.done += [node for node in batch if node not in bad]
        if bad:
            raise StoppedError(Course(tuple(self.done), bad, rest), work, exit_code=ExitCode.FAILED)

    def _reasons(self, nodes: Collection[str]) -> dict[str, list[tuple[str, str]]]:
        """By node who drained it in an earlier upgrade to this release, and why."""
        return {
            node.name: [(each.who, each.why) for each in node.drains if each.why.startswith(self.why)]
            for node in self.ledger.nodes([*nodes])
        }

    def _change(self, nodes: tuple[str, ...]) -> Bad:
        self.forget(nodes)
        try:
            self.step("hosts", nodes)
        except DeployError as problem:
            return {finding.where: finding.message for finding in problem.findings if finding.where in nodes}
        return {}

    def _check(self, nodes: tuple[str, ...]) -> Bad:
        return self._waited(lambda: self._troubles(nodes, is_new=True)) if nodes else {}

    def logins(self) -> None:
        """Whatever is left: login nodes, and hosts with the commands alone."""
        names = self.left
        if names:
            self.run.say(f"login nodes {fold(names)}")
            self.forget(names)
            self.step("hosts", names)
            self.done += names
        self.gate("at the end", [host.name for host in self.run.site.nodes])

    def step(self, group: str, hosts: Collection[str], **variables: Any) -> dict[str, Mapping[str, Any]]:  # noqa: ANN401
        """What hosts answered in one play of playbooks/upgrade.yml.

        Raises DeployError ``upgrade-step-failed``.
        """
        if not hosts:
            return {}
        source = self.run.place / f"{group}.json"
        # Of a host that this step does not change the pin stays as it is.
        kept = {} if group in {"controllers", "hosts"} else self._kept()
        write_step(source, self.run.site, self.contract, group, hosts, kept=kept, variables=variables)
        events: list[Event] = []
        with signals_cancel(self.run.cancellation):
            execute(
                self.run.request("upgrade", source, borrowed_secrets(self.run)),
                events.append,
                self.run.cancellation,
                self.run.ansible,
            )
        self.run.refuse_silence(events, hosts)
        results = [event for event in events if isinstance(event, HostResult)]
        failed = {event.host: event for event in results if event.is_trouble}
        if failed:
            findings = [
                Finding(
                    name,
                    "upgrade-step-failed",
                    f"{event.title}: {event.message}",
                    self.run.command("upgrade"),
                )
                for name, event in failed.items()
            ]
            raise DeployError(*findings, exit_code=ExitCode.FAILED)
        return {event.host: event.answer for event in results if event.answer}

    def forget(self, names: Collection[str]) -> None:
        """Hosts have no record of what is about to change; ``deploy cluster`` at the end writes them."""
        plan = build_plan(self.run.site, self.contract, limit=names)
        theirs = {step.phase.name: tuple(name for name in step.hosts if name in names) for step in plan.steps}
        self.run.records.forget(plan.only(theirs), {})

    def _kept(self) -> dict[str, str]:
        found = {
            name: release(version) for name, version in self.before.items() if not is_of(version, self.wanted)
        }
        return {name: shown(each) for name, each in found.items() if each}

    def _troubles(self, names: Collection[str], *, is_new: bool = False) -> dict[str, str]:
        """By host what is wrong: daemons or nodes that do not answer, or are not of the new release."""
        said = self.ask("gate")
        controller = self.run.site.controller.name
        silent = [f"{unit}: {said[unit]}" for unit in ("slurmdbd", "slurmctld") if said[unit]]
        bad = {controller: "; ".join(silent)} if silent else {}
        for name in names:
            node = said["nodes"].get(name)
            if node is None:
                bad[name] = "Slurm does not know it"
            elif not node["answers"] or "DOWN" in node["states"]:
                bad[name] = f"its slurmd does not answer ({'+'.join(node['states']).lower()})"
            elif is_new and not is_of(node["version"], self.wanted):
                bad[name] = f"it registered as Slurm {node['version'] or 'unknown'}"
        return bad

    def _waited(self, troubles: Callable[[], dict[str, str]]) -> dict[str, str]:
        """What is wrong when it had its time to become right."""
        deadline = time.monotonic() + _PATIENCE
        while (bad := troubles()) and time.monotonic() < deadline and not self.run.cancellation.is_asked:
            time.sleep(_PAUSE)
        return bad

    def _witnesses(self, verb: str, **arguments: Any) -> dict[str, str]:  # noqa: ANN401
        return self.ask(verb, user=self.user, **arguments) if self.user else {}

    def _bore_witness(self, nodes: list[str], long: Mapping[str, str]) -> Bad:
        """What is wrong with nodes by the jobs of the validation user there."""
        bad = {}
        ran_on = self.ask("held", jobs=dict(long)) if long else {}
        for node, state in ran_on.items():
            if state not in {"RUNNING", _COMPLETED}:
                bad[node] = f"a job that ran there before is {state}"
        for node, state in self._witnesses("witness", nodes=nodes).items():
            if state == _NO_ROOM:
                self.notes.append(f"{node} had no room for a witness job")
            elif state != _COMPLETED:
                bad.setdefault(node, f"a witness job is {state}")
        return bad

    @contextmanager
    def halting(self) -> Iterator[None]:
        """What fails says what was done, and what was not begun."""
        try:
            yield
        except StoppedError:
            raise
        except DeployError as problem:
            left = [name for name in self.before if name not in self.done]
            done = f"done: {fold(self.done)}; " if self.done else "no host was changed; "
            finding = Finding(
                "",
                "upgrade-halted",
                f"the upgrade stopped; {done}not done: {fold(left)}",
                f"put it right, then the same again: {self.run.command('upgrade')}",
            )
            raise DeployError(*problem.findings, finding, exit_code=problem.exit_code) from None

    def outcome(self, jobs: Mapping[str, Any], stream: Submissions) -> Outcome:
        """What became of everybody's jobs, and of the witnesses."""
        before: Mapping[str, list[Any]] = jobs.get("jobs", {})
        now: Mapping[str, list[Any]] = self.ask("jobs", but=self.user or "").get("jobs", {})
        gone = [name for name in before if name not in now]
        rows = self.ask("ended", names=gone)
        witnesses = self._ended(stream.jobs)
        waiting = self.ask("leave", user=self.user)["waiting"] if self.user else []
        return Outcome(
            self.wanted,
            self.before,
            time.time() - self.began,
            backup=self.backup,
            rehearsal=dict(self.rehearsal),
            done=tuple(self.done),
            jobs=tuple(fates(before, now, rows)),
            submitted=len(stream.jobs),
            without_end=tuple(
                name for name, states in witnesses.items() if states != [_COMPLETED] and name not in waiting
            ),
            silence=stream.longest_silence,
            notes=(*self.notes, *([stream.trouble] if stream.trouble else [])),
        )

    def _ended(self, names: list[str]) -> dict[str, list[str]]:
        """The rows of jobs that end by themselves, when they had time for it."""
        deadline = time.monotonic() + _PATIENCE
        rows = self.ask("ended", names=names)
        while any(states != [_COMPLETED] for states in rows.values()) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            rows = self.ask("ended", names=names)
        return rows


def _rehearsed(said: Mapping[str, Any]) -> str:
    jobs = sum(count for table, count in said["counts"].items() if table.endswith("_job_table"))
    room = f"{said['seconds']} s and {said['bytes'] >> 20} MiB"
    return f"it took {room}; {jobs} jobs, associations and usage are the same"
