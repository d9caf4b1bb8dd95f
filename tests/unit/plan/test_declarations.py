from pathlib import Path

import pytest

from deploy.content import roles
from deploy.plan import declarations
from deploy.plan.catalog import ORDER, PHASES
from deploy.plan.declarations import Declared, Listening, Service, Step
from deploy.plan.selectors import SELECTORS

_PHASE = (
    "phases: [{name: toy, title: Toy, hosts: nodes, tag: x, after: [base], steps: [{role: toy, title: T}]}]"
)


def _read(name: str) -> None:
    declarations.service(name)
    declarations.listening(name)
    list(declarations.phases())


@pytest.fixture
def role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A role of its own, which says nothing yet."""
    monkeypatch.setattr(declarations, "roles", lambda: tmp_path)
    monkeypatch.setattr(declarations, "_declarations", declarations._declarations.__wrapped__)
    directory = tmp_path / "toy" / "meta"
    directory.mkdir(parents=True)
    return directory / "deploy.yml"


def test_a_role_that_says_nothing(role: Path) -> None:
    assert not role.exists()
    assert declarations.service("toy") is None
    assert declarations.listening("toy") is None
    assert list(declarations.phases()) == []


def test_a_service_and_what_listens(role: Path) -> None:
    role.write_text(
        "service: {unit: toy, optional: true}\nlistens: {programs: [toyd, toy], to: people, job: t}"
    )
    assert declarations.service("toy") == Service("toy", optional=True)
    said = declarations.listening("toy")
    assert said == Listening(("toyd", "toy"), to="people", job="t")
    assert said.is_page
    assert said.is_watched


def test_a_phase(role: Path) -> None:
    role.write_text(_PHASE)
    assert list(declarations.phases()) == [
        Declared("toy", "Toy", "nodes", "x", (Step("toy", "T"),), after=("base",))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "service: {unit: toy, units: [x]}",
        "listens: {programs: [], to: people, ports: 7}",
        _PHASE.replace("after", "befor"),
        _PHASE.replace("title: T}", "titel: T}"),
    ],
)
def test_what_no_declaration_has_is_refused(role: Path, text: str) -> None:
    role.write_text(text)
    with pytest.raises(TypeError):
        _read("toy")


def test_every_declaration_is_one() -> None:
    for path in roles().glob("*/meta/deploy.yml"):
        role = path.parents[1].name
        known = {"service", "listens", "listens_also", "phases"}
        assert known >= declarations._declarations()[role].keys(), role
        said = declarations.listening(role)
        assert said is None or said.to in {"cluster", "watchers", "people", "users"}
        declarations.service(role)
    assert declarations.optional_units() == {"sackd"}


def test_every_phase_has_its_turn_and_its_hosts() -> None:
    declared = list(declarations.phases())
    assert sorted(phase.name for phase in declared) == sorted(ORDER)
    assert [phase.name for phase in PHASES] == list(ORDER)
    assert {phase.hosts for phase in declared} == SELECTORS.keys()
