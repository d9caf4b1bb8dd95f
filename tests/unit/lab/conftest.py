"""What all tests of labs have in common."""

from pathlib import Path

import pytest

from deploy.lab import locks


@pytest.fixture(autouse=True)
def _own_locks(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Not those of this machine, which are root's."""
    monkeypatch.setattr(locks, "PLACE", Path(tmp_path_factory.mktemp("run")) / "deploy-lab")
