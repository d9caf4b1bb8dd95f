from pathlib import Path

import pytest

from deploy.content import roles
from deploy.plan import declarations
from deploy.plan.declarations import Service


@pytest.fixture
def role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A role of its own, which says nothing yet."""
    monkeypatch.setattr(declarations, "roles", lambda: tmp_path)
    declarations.service.cache_clear()
    directory = tmp_path / "toy" / "meta"
    directory.mkdir(parents=True)
    return directory / "deploy.yml"


@pytest.fixture(autouse=True)
def _forget() -> None:
    declarations.service.cache_clear()


def test_a_role_without_a_service(role: Path) -> None:
    assert not role.exists()
    assert declarations.service("toy") is None
    assert declarations.programs("toy") == ()


def test_a_service_and_its_programs(role: Path) -> None:
    role.write_text("service: {unit: toy, optional: true, programs: [toyd, toy]}")
    assert declarations.service("toy") == Service("toy", optional=True, programs=("toyd", "toy"))


def test_what_no_service_has_is_refused(role: Path) -> None:
    role.write_text("service: {unit: toy, units: [x]}")
    with pytest.raises(TypeError, match="units"):
        declarations.service("toy")


def test_every_declaration_is_one() -> None:
    found = {path.parent.parent.name for path in roles().glob("*/meta/deploy.yml")}
    assert {name for name in found if declarations.service(name)} == found
    assert "munge" in found
    assert declarations.optional_units() == {"sackd"}
