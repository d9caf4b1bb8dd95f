"""A site is rehearsed: its own names on containers, a verdict, what users type, a portal; nothing left."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from secrets import token_hex

import pytest

from deploy.in_memory import place_for_secrets
from tests.cluster.lab_cluster import DEPLOY, run
from tests.contract.content import ROOT
from tests.planted import everywhere, holders

pytestmark = [pytest.mark.one_release, pytest.mark.more]

SITE = ROOT / "inventory/sites/tcg-crest"
NAME = f"test-rehearsal-{os.getpid()}"


def test_a_site_of_three_machines(tmp_path: Path) -> None:
    site = shutil.copytree(SITE, tmp_path / "site")
    planted = token_hex(16)
    declared = site / "host_vars" / "master.yml"
    declared.parent.mkdir()
    declared.write_text(json.dumps({"mariadb_users": everywhere(planted)["mariadb_users"]}))
    result = tmp_path / "result.json"
    said = run(
        *DEPLOY,
        *("rehearse", str(site / "inventory.ini")),
        *("--name", NAME, "--output", "plain", "--json", str(result)),
        seconds=2400,
    )
    content = json.loads(result.read_text())
    assert {
        check["check"] for check in content["validation"]["checks"] if check["outcome"] == "failed"
    } == set()
    assert "\npassed: 0 failed, " in said.stdout
    commands = {command["id"]: command for command in content["commands"]}
    assert {name for name, command in commands.items() if command["verdict"] == "different"} == set()
    assert "NodeName=gpu-node-02 " in commands["scontrol-show-nodes"]["output"]
    assert set(commands["option-array"]["jobs"].values()) == {"COMPLETED"}
    assert len(commands["option-array"]["jobs"]) == 3
    assert commands["activate"]["verdict"] == "left out"
    assert commands["sinfo"]["here"] == []
    # On nodes that pretended to have what the guide's job asks for, after the others.
    (pretended,) = commands["deep-learning-job"]["here"]
    assert "8 CPUs and 65536 MiB (slurm-node)" in pretended
    assert set(commands["deep-learning-job"]["jobs"].values()) == {"COMPLETED"}
    for name, page in ("jupyter", "lab"), ("tensorboard", "tensorboard/"):
        output = commands[f"web-interface-{name}"]["output"]
        assert f"running\nconnected to {page} True\nended\nCANCELLED" in output
    assert f"lab {NAME} is gone" in said.stderr
    assert NAME not in run("podman", "ps", "--all", "--format", "{{.Names}}").stdout
    assert NAME not in run("podman", "volume", "ls", "--format", "{{.Name}}").stdout
    assert not (site / "secrets.yml").exists()
    assert planted not in said.stdout + said.stderr
    left = [*place_for_secrets().glob("deploy-*"), *Path(tempfile.gettempdir()).glob("deploy-*")]
    assert holders([tmp_path, *left], [planted]) == [declared]
