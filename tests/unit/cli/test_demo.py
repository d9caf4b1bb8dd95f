"""A demo deploys on machines of its lab alone."""

from pathlib import Path
from typing import Any

import pytest

from deploy.cli import demo as verb
from deploy.errors import DeployError
from deploy.lab.up import Outcome
from tests.unit.lab.test_labs import lab_of


def test_what_is_no_lab_is_not_deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text("[slurm-master]\nctl1\n")
    outcome = Outcome(lab_of(("ctl1", "running")), inventory, (), (), "", "")
    deployed: list[Any] = []
    monkeypatch.setattr(verb, "bring_up", lambda *_: outcome)
    monkeypatch.setattr(verb, "deploy_cluster", lambda *words: deployed.append(words))
    with pytest.raises(DeployError, match=r"ctl1 is at ctl1.*\[lab-other-machines\]"):
        verb.demo(directory=tmp_path)
    assert deployed == []
