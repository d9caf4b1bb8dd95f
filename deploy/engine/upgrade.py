"""What ``deploy upgrade`` does: Slurm of the whole cluster from one release to another, while jobs run."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deploy.engine.alone import alone
from deploy.engine.batches import Bad, Course, Share, StoppedError, Work, in_batches, next_batch
from deploy.engine.drains import reason
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.engine.secrets import borrowed_secrets
from deploy.engine.upgrade_servers import (
    Servers,
    await_conversion,
    compute,
    refuse_unready,
    servers,
    told,
)
from deploy.engine.upgrade_state import State
from deploy.errors import DeployError, ExitCode, Finding, error
from deploy.judge.upgrade_outcome import Outcome, fates
from deploy.judge.upgrade_route import is_of, refuse_route
from deploy.judge.version_skew import release, shown
from deploy.plan.build import build_plan
from deploy.plan.slurm_source import is_built, slurm_builder
from deploy.plan.upgrade_groups import write_step
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event, HostResult
from deploy.run.execute import execute
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.submissions import Submissions, submissions
from deploy.site.node_lists import fold

__all__ = ["Outcome", "Walk", "upgrade"]

_PATIENCE, _PAUSE = 120.0, 1.0
_LEAST_SLURMD_TIMEOUT = 300
"""Slurm's own default. slurmd is down while dpkg configures packages: for two minutes on a busy machine."""
_NO_ROOM, _COMPLETED = "no room", "COMPLETED"

Say = Callable[[str], None]
"""Gets what is done next, in lines."""


def upgrade(
    inventory: Path,
    options: Options,
    most: Share,
    say: Say,
    *,
    drains: bool,
    proves: Callable[[], None] = lambda: None,
) -> Outcome:
    """Walks the cluster to the release that the site wants; with ``drains``, nodes when they have no jobs.

    ``proves`` is called before the first step of a cluster that is whole, and raises DeployError where the
    cluster is not what it should be.

    Raises DeployError: before anything changed where the way is refused (exit code 2), and at the first step
    that fails, with what was begun and what was not.
    """
    with (
        opened(inventory, options) as run,
        site_lock(state_directory(run.site.directory)),
        alone(replace(run, say=say), lambda _: None, is_needed=True),
    ):
        state = State(run)
        walk = Walk(replace(run, say=say), state, most, drains=drains, proves=proves)
        walk.refuse()
        if not state.left:
            return Outcome(state.wanted, state.before, time.time() - walk.began, is_nothing=True)
        return walk.whole()


@dataclass
class Walk:
    """One upgrade. What is left to do is what hosts say of themselves, whatever an earlier one came to."""

    run: Run
    state: State
    most: Share
    drains: bool
    proves: Callable[[], None] = lambda: None
    began: float = field(default_factory=time.time)
    rehearsal: Mapping[str, Any] = field(default_factory=dict)
    backup: str = ""
    kept_on: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    was_stopped: bool = False
    """Whether Slurm was when this began, as an upgrade leaves it that is cut off."""

    def whole(self) -> Outcome:
        """All steps in their order."""
        site = self.run.site
        self.start()
        with (
            self.leaving_nothing(),
            submissions(site.logins[0], self.run.options.login, self.state.user) as stream,
        ):
            jobs = self._jobs_of_before()
            with self.halting():
                self.fetch()
                if self.state.left_of(servers(site)):
                    self.servers()
                self.nodes()
                self.logins()
        return self.outcome(jobs, stream)

    def refuse(self) -> None:
        """Raises DeployError where one hop does not lead to what is wanted, or deploy knows no way."""
        refuse_route(self.state.wanted, self.state.before, self.run.inventory)
        controller = self.run.site.controller.name
        said = self.state.looks([controller])[controller]
        if not (said["packages"] or said["broken"]):
            raise error(
                "upgrade-no-cluster",
                "there is no Slurm yet, so there is nothing to upgrade",
                where=controller,
                hint=f"deploy cluster {self.run.inventory}   (it installs the wanted version)",
            )
        if said["built"] != is_built(self.run.site.controller):
            source = self.run.site.controller.value("slurm_packages_source")
            raise error(
                "slurm-source-differs",
                f"it has Slurm from other packages than slurm_packages_source: {source} says; deploy does "
                "not put the one in the other's place",
                where=controller,
                hint="leave slurm_packages_source as it was for this upgrade",
            )

    def start(self) -> None:
        """Raises DeployError where Slurm does not answer, unless an upgrade that was cut off stopped it."""
        site = self.run.site
        looks = self.state.looks([host.name for host in servers(site)])
        refuse_unready(self, looks)
        cut_off = {name: why for name, said in looks.items() if (why := _cut_off(said))}
        for name, why in cut_off.items():
            self.run.say(
                f"{name}: {why}, as an upgrade leaves it that is cut off: this one goes on from there"
            )
        await_conversion(self, looks)
        if cut_off:
            self.was_stopped = True
            self.notes.append("Slurm was stopped at the beginning, so the jobs of before are not known")
            return
        self.gate("before the first step")
        if self._compute():
            self.refuse_short_timeout()
        if site.controller.name in self.state.left:
            self.proves()

    def refuse_short_timeout(self, exit_code: ExitCode = ExitCode.BAD_INPUT) -> None:
        """Raises DeployError where Slurm would set a node DOWN, and requeue its jobs, while it is upgraded.

        Where nodes have no jobs then, none can be lost.
        """
        if self.drains:
            return
        seconds = self.state.ask("timeout")["seconds"]
        if seconds == 0 or (seconds is not None and seconds >= _LEAST_SLURMD_TIMEOUT):
            return
        said = "does not say its SlurmdTimeout" if seconds is None else f"has SlurmdTimeout {seconds} s"
        raise error(
            "upgrade-slurmd-timeout",
            f"slurmctld {said}. After so long without an answer a node is DOWN and its jobs are requeued; "
            f"slurmd does not answer while its packages change, which may take {_LEAST_SLURMD_TIMEOUT} s",
            where=self.run.site.controller.name,
            hint=f"slurmctld_slurmd_timeout: {_LEAST_SLURMD_TIMEOUT}, {self.run.command('cluster')}, then "
            f"the same again; or {self.run.command('upgrade')} --drain, where nodes have no jobs meanwhile",
            exit_code=exit_code,
        )

    def _compute(self) -> list[str]:
        """The compute nodes that are left, without those that are servers, too."""
        names = compute(self.run.site)
        return [name for name in self.state.left if name in names and name not in self.done]

    def gate(self, when: str, names: Collection[str] = ()) -> None:
        """Raises DeployError where Slurm does not answer, or one of the nodes is not in order."""
        self.run.say(f"checks {when}")
        bad = self.waited(lambda: self.state.troubles(names))
        if bad:
            findings = [
                Finding(where, "upgrade-gate", f"{why}, {when}", self.run.command("status"))
                for where, why in bad.items()
            ]
            raise DeployError(*findings, exit_code=ExitCode.FAILED)

    def fetch(self) -> None:
        """The wanted release is on every host that is not there yet; on controllers it is unpacked beside."""
        if builders := [host.name for host in slurm_builder(self.run.site)]:
            self.run.say(f"Slurm {self.state.wanted} is built, unless that was done before")
            self.step("build", builders)
        self.run.say(f"Slurm {self.state.wanted} is fetched")
        self.step("prepare", self.state.left)
        if self.run.site.containers:
            self.run.say(f"the plugin for containers is built for Slurm {self.state.wanted}")
            self.step("plugin", [self.run.site.controller.name])

    def servers(self) -> None:
        """The daemons slurmdbd and slurmctld; until they start again, the old packages are the way back."""
        these = Servers(self)
        self.rehearsal = these.rehearse()
        if self.rehearsal:
            self.run.say(_rehearsed(self.rehearsal))
        try:
            these.change(float(self.rehearsal.get("seconds", 0)))
        finally:
            self.backup, self.kept_on = these.backup, these.kept_on
        self.gate("after the controller")

    def nodes(self) -> None:
        """One node, and when that is good the others in batches."""
        most = Share(1)
        if self._compute():
            self.refuse_short_timeout(ExitCode.FAILED)
        while left := self._compute():
            partitions: dict[str, set[str]] = {}
            out = set()
            for node in self.state.ledger.nodes():
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
        earlier = self.reasons(batch)
        long = self._witnesses("hold", nodes=[*batch]) if not self.drains else {}
        work = Work(
            f"Slurm {self.state.wanted}",
            self.state.why,
            self._change,
            self._check,
            lambda _: self.run.command("upgrade"),
            waits=self.drains,
        )
        try:
            in_batches(self.state.ledger, batch, Share(len(batch)), work, self.run.say)
        except StoppedError as problem:
            course = replace(problem.course, done=tuple(self.done), left=(*problem.course.left, *rest))
            raise StoppedError(course, work, exit_code=problem.exit_code) from None
        self.release(earlier)
        bad = self._bore_witness([*batch], long)
        for node, why in bad.items():
            self.state.ledger.drain([node], reason(f"{self.state.why}: {why}"))
        self.done += [node for node in batch if node not in bad]
        if bad:
            raise StoppedError(Course(tuple(self.done), bad, rest), work, exit_code=ExitCode.FAILED)

    def reasons(self, nodes: Collection[str]) -> dict[str, list[tuple[str, str]]]:
        """By node who drained it in an earlier upgrade to this release, and why."""
        return {
            node.name: [(each.who, each.why) for each in node.drains if each.why.startswith(self.state.why)]
            for node in self.state.ledger.nodes([*nodes])
        }

    def release(self, held: Mapping[str, list[tuple[str, str]]]) -> None:
        """Takes back drains of an earlier upgrade, by node who made them and why."""
        for node, reasons in held.items():
            for who, why in reasons:
                self.state.ledger.ask("resume", [node], {"names": [node], "who": who, "why": why})

    def _change(self, nodes: tuple[str, ...]) -> Bad:
        self.forget(nodes)
        try:
            self.step("hosts", nodes)
        except DeployError as problem:
            return {finding.where: finding.message for finding in problem.findings if finding.where in nodes}
        return {}

    def _check(self, nodes: tuple[str, ...]) -> Bad:
        bad = self.waited(lambda: self.state.troubles(nodes, is_new=True)) if nodes else {}
        for where, why in bad.items():
            if where not in nodes:
                raise error(
                    "upgrade-gate",
                    why,
                    where=where,
                    hint=self.run.command("status"),
                    exit_code=ExitCode.FAILED,
                )
        return bad

    def logins(self) -> None:
        """Whatever is left: login nodes, and hosts with the commands alone."""
        others = {host.name for host in (*self.run.site.nodes, *servers(self.run.site))}
        names = [name for name in self.state.left if name not in others]
        if names:
            self.run.say(f"login nodes {fold(names)}")
            self.forget(names)
            self.step("hosts", names)
            self.done += names
        self.gate("at the end", [host.name for host in self.run.site.nodes])

    def step(
        self,
        group: str,
        hosts: Collection[str],
        *,
        back_to: str = "",
        **variables: Any,  # noqa: ANN401
    ) -> dict[str, Mapping[str, Any]]:
        """What hosts answered in one play of playbooks/upgrade.yml; ``back_to`` is the release of before.

        Raises DeployError ``upgrade-step-failed``.
        """
        if not hosts:
            return {}
        source = self.run.place / f"{group}.json"
        # Of a host that this step does not change the pin stays as it is.
        kept = {} if group in {"controllers", "hosts"} else self._kept()
        unpacks = {host.name for host in (self.run.site.controller, *self.run.site.accounting_lead)}
        own = told(self.run.site)
        by_host: dict[str, dict[str, Any]] = {
            name: {
                "slurm_packages_kept": kept.get(name, ""),
                "slurm_stage_unpacks": name in unpacks,
                **own.get(name, {}),
            }
            for name in self.run.site.hosts
        }
        if back_to:
            for name in hosts:
                by_host[name] |= {"slurm_packages_version": back_to, "slurm_stage_goes_back": True}
        write_step(
            source, self.run.site, self.state.contract, group, hosts, by_host=by_host, variables=variables
        )
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
        # What failed first: a daemon that is started whatever happens may fail because of it.
        failed = {event.host: event for event in reversed(results) if event.is_trouble}
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
        self.begun += names
        plan = build_plan(self.run.site, self.state.contract, limit=names)
        theirs = {step.phase.name: tuple(name for name in step.hosts if name in names) for step in plan.steps}
        self.run.records.forget(plan.only(theirs), {})

    def _kept(self) -> dict[str, str]:
        found = {
            name: release(version)
            for name, version in self.state.before.items()
            if not is_of(version, self.state.wanted)
        }
        return {name: shown(each) for name, each in found.items() if each}

    def waited(self, troubles: Callable[[], dict[str, str]]) -> dict[str, str]:
        """What is wrong when it had its time to become right."""
        deadline = time.monotonic() + _PATIENCE
        while (bad := troubles()) and time.monotonic() < deadline and not self.run.cancellation.is_asked:
            time.sleep(_PAUSE)
        return bad

    def _witnesses(self, verb: str, **arguments: Any) -> dict[str, str]:  # noqa: ANN401
        return self.state.ask(verb, user=self.state.user, **arguments) if self.state.user else {}

    def _bore_witness(self, nodes: list[str], long: Mapping[str, str]) -> Bad:
        """What is wrong with nodes by the jobs of the validation user there."""
        bad = {}
        ran_on = self.state.ask("held", jobs=dict(long)) if long else {}
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
    def leaving_nothing(self) -> Iterator[None]:
        """What fails leaves no witness in the queue, where users would wonder what waits there."""
        try:
            yield
        except DeployError:
            if self.state.user:
                with suppress(DeployError):
                    self.state.ask("leave", user=self.state.user)
            raise

    @contextmanager
    def halting(self) -> Iterator[None]:
        """What fails says what was done, and what was not begun."""
        try:
            yield
        except StoppedError:
            raise
        except DeployError as problem:
            left = [name for name in self.state.before if name not in {*self.done, *self.begun}]
            begun = [name for name in self.begun if name not in self.done]
            course = [
                *([f"done: {fold(self.done)}"] if self.done else []),
                *([f"begun, and not done: {fold(begun)}"] if begun else []),
                *([f"not begun, and as they were: {fold(left)}"] if left else []),
            ]
            finding = Finding(
                "",
                "upgrade-halted",
                f"the upgrade stopped; {'; '.join(course)}",
                f"put it right, then the same again: {self.run.command('upgrade')}",
            )
            raise DeployError(*problem.findings, finding, exit_code=problem.exit_code) from None

    def _jobs(self) -> tuple[dict[str, list[Any]], str]:
        """The jobs of users, when Slurm had its time to say which; else why it does not."""
        said: dict[str, Any] = {}

        def trouble() -> dict[str, str]:
            said.clear()
            said.update(self.state.ask("jobs", but=self.state.user or ""))
            return {"": said["trouble"]} if "trouble" in said else {}

        bad = self.waited(trouble)
        return said.get("jobs", {}), f"squeue does not say which jobs there are: {bad['']}" if bad else ""

    def _jobs_of_before(self) -> dict[str, list[Any]]:
        """None where Slurm was stopped. Raises DeployError where it does not say: nobody would see a loss."""
        if self.was_stopped:
            return {}
        jobs, why = self._jobs()
        if why:
            where, hint = self.run.site.controller.name, self.run.command("upgrade")
            raise error(
                "upgrade-gate",
                f"{why}, before the first step",
                where=where,
                hint=f"squeue --all --array   (on {where}); when it answers: {hint}",
                exit_code=ExitCode.FAILED,
            )
        return jobs

    def outcome(self, before: Mapping[str, list[Any]], stream: Submissions) -> Outcome:
        """What became of everybody's jobs, and of the witnesses."""
        now, unknown = self._jobs() if before else ({}, "")
        gone = [name for name in before if name not in now and not unknown]
        rows = self._rows(gone, bool)
        witnesses = self._rows(stream.jobs, lambda states: states == [_COMPLETED])
        waiting = self.state.ask("leave", user=self.state.user)["waiting"] if self.state.user else []
        return Outcome(
            self.state.wanted,
            self.state.before,
            time.time() - self.began,
            backup=self.backup,
            backup_on=tuple(self.kept_on),
            rehearsal=dict(self.rehearsal),
            done=tuple(self.done),
            jobs=() if unknown else tuple(fates(before, now, rows)),
            unknown=unknown,
            submitted=len(stream.jobs),
            without_end=tuple(
                name for name in stream.jobs if witnesses.get(name) != [_COMPLETED] and name not in waiting
            ),
            silence=stream.longest_silence,
            notes=(*self.notes, *([stream.trouble] if stream.trouble else [])),
        )

    def _rows(self, names: list[str], is_right: Callable[[list[str]], bool]) -> dict[str, list[str]]:
        """The rows that accounting has of jobs, when each had its time to become right."""
        rows: dict[str, list[str]] = {}

        def troubles() -> dict[str, str]:
            rows.clear()
            rows.update(self.state.ask("ended", names=names) if names else {})
            return {name: "" for name in names if not is_right(rows.get(name, []))}

        self.waited(troubles)
        return rows


def _rehearsed(said: Mapping[str, Any]) -> str:
    jobs = sum(count for table, count in said["counts"].items() if table.endswith("_job_table"))
    room = f"{said['seconds']} s and {said['bytes'] >> 20} MiB"
    return f"it took {room}; {jobs} jobs, associations and usage are the same"


def _cut_off(said: Mapping[str, Any]) -> str:
    """What an upgrade left of a server that was cut off; empty where nothing did."""
    if said["broken"]:
        return f"dpkg left {', '.join(said['broken'])} undone"
    stopped = [unit for unit, state in said["daemons"].items() if state == "inactive"]
    return f"{', '.join(stopped)} stopped" if stopped else ""
