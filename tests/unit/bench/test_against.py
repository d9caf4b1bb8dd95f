"""Two versions are measured in turn, and each is the first as often."""

from pathlib import Path

import yaml

from tests.bench.against import Turns, Version, leave_out_unknown
from tests.bench.commands import Finished
from tests.bench.figures import THIS, Compared
from tests.bench.lab import BenchLab


def _lab(place: Path) -> BenchLab:
    return BenchLab("lab", place, {}, 1)


def test_the_first_of_one_turn_is_the_second_of_the_next() -> None:
    labs = [(THIS, _lab(Path("new"))), ("23f6881", _lab(Path("old")))]
    costs: dict[Compared, dict[str, list[Finished]]] = {Compared.RERUN: {THIS: [], "23f6881": []}}
    ran: list[str] = []

    def way(lab: BenchLab) -> Finished:
        ran.append(lab.place.name)
        return Finished(b"", float(len(ran)), 0.0)

    turns = Turns(labs, costs, lambda _line: None)
    for _ in range(3):
        turns.measure(Compared.RERUN, way)
    assert ran == ["new", "old", "old", "new", "new", "old"]
    assert [cost.seconds for cost in costs[Compared.RERUN][THIS]] == [1.0, 4.0, 5.0]


def test_a_version_is_not_given_variables_that_it_has_not(tmp_path: Path) -> None:
    version, lab = Version("23f6881", tmp_path / "checkout"), _lab(tmp_path)
    specs = version.checkout / "roles/slurmd/meta/argument_specs.yml"
    specs.parent.mkdir(parents=True)
    specs.write_text("argument_specs: {main: {options: {slurmd_gpus: {}}}}\n")
    variables = lab.site / "group_vars/slurm-node.yml"
    variables.parent.mkdir(parents=True)
    variables.write_text("# Lab\nslurmd_gpus: [a100]\nscratch_is_new: true\n")
    leave_out_unknown(lab, version)
    assert yaml.safe_load(variables.read_text()) == {"slurmd_gpus": ["a100"]}


def test_a_version_is_called_by_its_own_command() -> None:
    assert Version("23f6881", Path("/clone")).deploy == ("/clone/.venv/bin/deploy",)
