"""The verdict on the figures is honest, and nothing that changed counts as converged."""

from tests.bench.commands import Finished
from tests.bench.figures import (
    GOALS,
    NOTHING,
    THIS,
    Compared,
    Measured,
    by_part,
    goals_of,
    of_parts,
    ratio,
    rows_without,
    seconds_of,
    table,
    table_against,
    table_without,
    tables,
)
from tests.bench.rerun import changes_in_recap, in_turn

FIGURES = {
    Measured.RERUN: [10.0, 11.0, 40.0],
    Measured.RERUN_FULL: [11.0, 11.0, 11.0],
    Measured.RERUN_PLAIN: [30.0, 22.0, 20.0],
    Measured.RERUN_TUNED: [11.0, 11.0, 11.0],
    Measured.RERUN_PYINFRA: [44.0, 44.0, 44.0],
    Measured.ONE_TO_3: [10.0, 10.0, 10.0],
    Measured.ONE_TO_9: [11.0, 13.0, 11.0],
    Measured.CPU_100: [1.0, 1.0, 1.0],
    Measured.CPU_1K: [11.0, 11.0, 11.0],
    Measured.FIRST: [40.0, 50.0, 60.0],
    Measured.FLOOR: [40.0, 40.0, 40.0],
    Measured.CHECK_1K: [1.0, 1.0, 1.0],
    Measured.CHECK_10K: [9.0, 8.0, 7.0],
    Measured.PLAN_1K: [2.0, 2.0, 2.0],
    Measured.PLAN_10K: [12.0, 18.0, 19.0],
    Measured.EXPORTER: [0.3, 0.3, 0.9],
    Measured.EXPORTER_PAUSE: [60.0, 60.0, 60.0],
}

_MISSED = ("<=", "1.03", "MISSED")


def test_ratios_of_medians_are_held_against_their_targets() -> None:
    ratios = {goal.title: round(ratio(goal, FIGURES), 3) for goal in GOALS}
    assert ratios == {
        "rerun / plain Ansible": 0.5,
        "rerun / pyinfra": 0.25,
        "full rerun / Ansible with the same settings": 1.0,
        "first deployment / floor": 1.25,
        "one node more: to 9 / to 3": 1.1,
        "offline check: 10,000 nodes / 1,000 nodes": 8.0,
        "offline plan: 10,000 nodes / 1,000 nodes": 9.0,
        "CPU of the controller: 1,000 hosts / 100 hosts": 11.0,
        "Slurm exporter: share of a core": 0.005,
    }
    lines = table(FIGURES).splitlines()
    verdicts_shown = [line.rsplit(maxsplit=1)[-1] for line in lines[-len(GOALS) :]]
    assert verdicts_shown == ["MISSED", *["met"] * 6, "MISSED", "met"]


def test_a_part_can_be_measured_alone_and_keeps_its_figures() -> None:
    alone = {measured: FIGURES[measured] for measured in (Measured.FIRST, Measured.FLOOR)}
    assert [goal.title for goal in goals_of(alone)] == ["first deployment / floor"]
    assert by_part(alone) == {"first": {"first": [40.0, 50.0, 60.0], "floor": [40.0, 40.0, 40.0]}}
    assert of_parts(by_part(FIGURES)) == FIGURES


def test_what_a_patch_is_worth_is_told_beside_runs_that_have_all() -> None:
    found = {
        "full rerun": {NOTHING: [10.0, 12.0, 11.0], "a": [11.0, 22.0, 90.0], "b": [11.0, 11.0, 1.0]},
        "first": {NOTHING: [40.0], "a": [50.0], "b": [38.0]},
        "of some": {NOTHING: [1.0], "b": [1.1]},
    }
    assert rows_without(found) == [("a", "2.00", "1.25", ""), ("b", "1.00", "0.95", "1.10")]
    assert table_without(found).splitlines()[1].split() == ["a", "2.00", "1.25"]
    assert of_parts({**by_part(FIGURES), "ablation": found}) == FIGURES


def test_a_version_is_slower_or_not_on_the_clock_and_of_cpu() -> None:
    def runs(*costs: tuple[float, float]) -> list[Finished]:
        return [Finished(b"", seconds, cpu) for seconds, cpu in costs]

    found = {
        Compared.RERUN: {
            THIS: runs((1.5, 0.7), (9.0, 0.72), (1.6, 0.71)),
            "23f6881": runs((1.5, 0.7), (1.5, 0.7)),
        }
    }
    clock, cpu = table_against(found).splitlines()[1:]
    assert clock.split() == [
        "rerun:",
        "nothing",
        "to",
        "change",
        "clock",
        "3",
        "1.50",
        "1.60",
        "1.067",
        *_MISSED,
    ]
    assert cpu.split()[-6:] == ["0.70", "0.71", "1.014", "<=", "1.03", "met"]
    assert seconds_of(found[Compared.RERUN])["CPU"] == {THIS: [0.7, 0.72, 0.71], "23f6881": [0.7, 0.7]}


def test_there_is_a_table_of_what_was_measured_alone() -> None:
    costs = {Compared.RERUN: {name: [Finished(b"", 1.0, 1.0)] for name in (THIS, "23f6881")}}
    assert tables({}, {}, costs) == [table_against(costs)]
    assert tables(FIGURES, {}, {}) == [table(FIGURES)]


def test_the_recap_of_ansible_playbook() -> None:
    text = (
        "PLAY RECAP ****\n"
        "ctl1                       : ok=36   changed=2    unreachable=0    failed=0    skipped=1\n"
        "node1                      : ok=3    changed=0    unreachable=1    failed=0    skipped=0\n"
    )
    assert changes_in_recap(text) == {"ctl1": 2, "node1": 1}
    assert changes_in_recap("ok: [ctl1]") == {}


def test_every_way_is_first_once() -> None:
    ways = dict.fromkeys((Measured.RERUN, Measured.RERUN_PLAIN, Measured.RERUN_TUNED), lambda: 0.0)
    assert {in_turn(ways, number)[0][0] for number in range(3)} == set(ways)
    assert all(len(in_turn(ways, number)) == 3 for number in range(4))
