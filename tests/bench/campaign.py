"""All measurements of one benchmark, by their parts; every lab is made fresh."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.ablation import first_deployments_without, reruns_without
from tests.bench.against import compare, installed
from tests.bench.exporter import cpu_seconds_of_a_round, seconds_between_rounds
from tests.bench.figures import Costs, Measured, Part, Without
from tests.bench.floor import Recording, prepared, put_in_place, record
from tests.bench.lab import BenchLab, Wish, fresh_lab
from tests.bench.large import cpu_seconds_of_rerun, seconds_to_check, seconds_to_plan
from tests.bench.one_more import seconds_to_add_one
from tests.bench.pyinfra import told
from tests.bench.rerun import Rerun, deploy_cluster, in_turn
from tests.bench.state import read_installed, read_state

_CLOSE_AGAIN = 4


@dataclass(frozen=True)
class Sizes:
    """Compute nodes of the labs, whose machines have that Debian release."""

    rerun: int
    first: int
    release: str


@dataclass
class Campaign:
    """Collects the seconds; ``prefix`` begins the names of its labs, ``place`` holds their directories."""

    sizes: Sizes
    rounds: int
    prefix: str
    place: Path
    say: Callable[[str], None]
    seconds: dict[Measured, list[float]] = field(default_factory=lambda: defaultdict(list))
    without: Without = field(default_factory=dict)
    """What runs take without one patch or another."""
    costs: Costs = field(default_factory=dict)
    """What runs take of this version and of another."""

    def run(self, parts: Collection[Part] = tuple(Part)) -> None:
        """Those parts, the short ones first."""
        measure = {
            Part.LARGE: self._large_sites,
            Part.EXPORTER: self._exporter,
            Part.ONE_MORE: self._one_more,
            Part.RERUN: self._reruns,
            Part.FIRST: self._first_deployments,
            Part.ABLATION: self._ablation,
        }
        for part in Part:
            if part in parts:
                measure[part]()

    def _first_deployments(self) -> None:
        recording = self._first_deployment(0)
        self._floor(0, recording)
        for number in range(1, self.rounds):
            # In turn, so that neither is always the one after the other.
            if number % 2:
                self._floor(number, recording)
                self._first_deployment(number)
            else:
                self._first_deployment(number)
                self._floor(number, recording)

    def _first_deployment(self, number: int) -> Recording:
        wish = Wish(self.sizes.first, self.sizes.release)
        with fresh_lab(f"{self.prefix}-deploy{number}", self.place / f"deploy{number}", wish) as lab:
            before = read_state(lab)
            started = time.monotonic()
            deploy_cluster(lab)
            lab.first_job()
            self._note(number, Measured.FIRST, time.monotonic() - started)
            return record(lab, read_installed(lab, before))

    def _floor(self, number: int, recording: Recording) -> None:
        wish = Wish(self.sizes.first, self.sizes.release)
        with fresh_lab(f"{self.prefix}-floor{number}", self.place / f"floor{number}", wish) as lab:
            archives = prepared(recording, lab)
            started = time.monotonic()
            put_in_place(recording, lab, archives)
            self._note(number, Measured.FLOOR, time.monotonic() - started)

    def _large_sites(self) -> None:
        for number in range(self.rounds):
            for measured, nodes in ((Measured.CHECK_1K, 1000), (Measured.CHECK_10K, 10_000)):
                place = self.place / f"check{number}-{nodes}"
                self._note(number, measured, seconds_to_check(place, nodes))
            for measured, nodes in ((Measured.PLAN_1K, 1000), (Measured.PLAN_10K, 10_000)):
                place = self.place / f"plan{number}-{nodes}"
                self._note(number, measured, seconds_to_plan(place, nodes))
            for measured, nodes in ((Measured.CPU_100, 100), (Measured.CPU_1K, 1000)):
                place = self.place / f"rerun{number}-{nodes}"
                self._note(number, measured, cpu_seconds_of_rerun(place, nodes))

    def _exporter(self) -> None:
        for number in range(self.rounds):
            cost = cpu_seconds_of_a_round(self.place / f"exporter{number}")
            self._note(number, Measured.EXPORTER, cost)
            self._note(number, Measured.EXPORTER_PAUSE, seconds_between_rounds())

    def _one_more(self) -> None:
        for number in range(self.rounds):
            for measured, nodes in ((Measured.ONE_TO_3, 3), (Measured.ONE_TO_9, 9)):
                name = f"{self.prefix}-more{number}-{nodes}"
                wish = Wish(nodes, self.sizes.release)
                self._note(
                    number, measured, seconds_to_add_one(name, self.place / f"more{number}-{nodes}", wish)
                )

    def _reruns(self) -> None:
        wish = Wish(self.sizes.rerun, self.sizes.release)
        with fresh_lab(f"{self.prefix}-rerun", self.place / "rerun", wish) as lab:
            before = read_state(lab)
            deploy_cluster(lab)
            rerun = Rerun(lab)
            pyinfra = told(lab, read_installed(lab, before), self.place / "pyinfra")
            ways = {
                Measured.RERUN: rerun.by_deploy,
                Measured.RERUN_FULL: rerun.by_full_deploy,
                Measured.RERUN_PLAIN: rerun.by_plain_ansible,
                Measured.RERUN_TUNED: rerun.by_tuned_ansible,
                Measured.RERUN_PYINFRA: pyinfra.rerun,
            }
            # What may differ by three percent has to be measured more often than what differs by far.
            close = {measured: ways[measured] for measured in (Measured.RERUN_FULL, Measured.RERUN_TUNED)}
            for number in range(self.rounds):
                for measured, way in in_turn(ways, number):
                    self._note(number, measured, way())
                for again in range(_CLOSE_AGAIN):
                    for measured, way in in_turn(close, again):
                        self._note(number, measured, way())

    def _ablation(self) -> None:
        wish = Wish(self.sizes.first, self.sizes.release)
        with fresh_lab(f"{self.prefix}-ablation", self.place / "ablation", wish) as lab:
            deploy_cluster(lab)
            self.without = reruns_without(lab, self.rounds, self.say)

        self.without = {**self.without, **first_deployments_without(self.without, self._fresh, self.say)}

    def against(self, commit: str) -> None:
        """This version beside that of another commit."""
        other = installed(commit, self.say)
        self.costs = compare(other, self.rounds, self._fresh, self.say)

    def _fresh(self, which: str) -> AbstractContextManager[BenchLab]:
        wish = Wish(self.sizes.first, self.sizes.release)
        return fresh_lab(f"{self.prefix}-{which}", self.place / which, wish)

    def _note(self, number: int, measured: Measured, seconds: float) -> None:
        self.seconds[measured].append(seconds)
        self.say(f"round {number + 1} of {self.rounds}  {measured}: {seconds:.1f} s")
