import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.run.settings import Settings
from tests.integration.driver import HOSTS
from tests.integration.sites import LocalSite


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalSite]:
    made = LocalSite(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(made.scratch))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(made.scratch))
    yield made
    shutil.rmtree(made.scratch)


@pytest.fixture(params=[True, False], ids=["mitogen", "openssh"])
def either_site(request: pytest.FixtureRequest, site: LocalSite) -> LocalSite:
    site.settings = Settings(hosts=len(HOSTS), mitogen=request.param)
    return site
