"""Every option that is a secret, planted in a site: what each verb leaves and says does not hold it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

from deploy.errors import ExitCode
from deploy.in_memory import place_for_secrets
from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import write_inventory
from deploy.site.inventory import read_site
from deploy.site.schema import options
from deploy.site.secrets import secret_names
from deploy.site.values import faults
from tests.planted import Text, everywhere, holders, leaves, secret_options
from tests.unit.site.sites import write_site

_PLANTED = "pl4nted" + "0f4c" * 9
_PROGRAMS = Path(sys.executable).parent
_INVENTORY = """\
[all]
ctl1 ansible_host=10.0.0.1
login1 ansible_host=10.0.0.2
node1 ansible_host=10.0.0.11

[all:vars]
ansible_ssh_common_args=-o ProxyCommand=false

[slurm-master]
ctl1

[slurm-metric]
ctl1

[slurm-log]
ctl1

[slurm-cache]
ctl1

[slurm-login]
login1

[slurm-node]
node1

[slurm-container]
node1
"""
_PAGE = "page.html"
_COMMANDS = """\
guide: A guide
shared: [/home]
commands:
  - {id: a, guide: {file: a.md, heading: A}, wording: verbatim, user: alice, run: "true", expect: {output: x}}
"""
_VERBS = {
    "check": ["--json"],
    "plan": ["--json"],
    "cluster": ["--output", "plain", "--no-validate"],
    "cluster --check": ["--output", "jsonl", "--diff", "-vvv"],
    "status": ["--json"],
    "validate": ["--json", "answers.json", "--html", _PAGE],
    "try": ["--json", "outcomes.json"],
    "report": ["--json"],
    "report --html": [_PAGE],
    "report --list": [],
    "bundle": [],
    "node remove": ["node9"],
    "schema": [],
}
"""What is typed; the inventory comes first among the arguments where there are some."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with all of them, whose hosts cannot be reached."""
    directory = tmp_path_factory.mktemp("planted")
    files = {
        "group_vars/all.yml": json.dumps(everywhere(_PLANTED)),
        "user-commands.yml": _COMMANDS,
        "secrets.yml": yaml.safe_dump({name: f"{_PLANTED}{len(name)}" for name in secret_names()}),
    }
    inventory = write_site(directory, _INVENTORY, files)
    typed = [sys.executable, "-m", "deploy", "cluster", str(inventory), "--no-validate"]
    ran = subprocess.run(typed, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    # Nothing is wrong with it but that nobody answers, so all verbs come as far as that.
    assert ran.returncode == ExitCode.UNREACHABLE, ran.stdout + ran.stderr
    return inventory


@pytest.mark.parametrize("verb", _VERBS)
def test_no_verb_leaves_or_says_a_secret(
    site: Path, tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="t-", dir=place_for_secrets()) as memory:
        for name in ("TMPDIR", "HOME"):
            monkeypatch.setenv(name, str(tmp_path))
        monkeypatch.setenv("XDG_RUNTIME_DIR", memory)
        words = [*verb.split(), *([] if verb == "schema" else [str(site)]), *_VERBS[verb]]
        if verb.rsplit(maxsplit=1)[-1].startswith("--"):
            words = [verb.split(maxsplit=1)[0], str(site), *verb.split()[1:], *_VERBS[verb]]
        if verb == "bundle":
            words += [str(tmp_path / "bundle"), "--url", "http://10.0.0.9"]
        said = subprocess.run(
            [sys.executable, "-m", "deploy", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        # What is typed is right, and comes as far as the hosts.
        assert said.returncode != ExitCode.BAD_INPUT or "commands-not-typed" in said.stderr, said.stderr
        assert _PLANTED not in said.stdout + said.stderr
        assert holders([tmp_path, Path(memory)], [_PLANTED]) == []
    kept = {path.relative_to(site.parent) for path in holders([site.parent], [_PLANTED])}
    assert kept == {Path("secrets.yml"), Path("group_vars/all.yml")}


_WRONG = [_PLANTED, [_PLANTED], {"x": _PLANTED}, [[_PLANTED]], [{"password": [_PLANTED]}]]


@pytest.mark.parametrize("name", secret_options())
def test_what_is_wrong_with_a_secret_is_said_without_it(name: str) -> None:
    said = [str(fault) for value in _WRONG for fault in faults(name, value)]
    assert said
    assert [text for text in said if _PLANTED in text] == []


def _encrypted(password: Path, text: str) -> str:
    command = [str(_PROGRAMS / "ansible-vault"), "encrypt", "--output", "-", "-"]
    command += ["--vault-password-file", str(password)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


class _Vaulted(Text):
    """One that is written as ``!vault``."""

    __slots__ = ()


def _represent(dumper: yaml.SafeDumper, text: _Vaulted) -> yaml.Node:
    return dumper.represent_scalar("!vault", str(text), style="|")


class _Dumper(yaml.SafeDumper):
    """One that knows it."""


_Dumper.add_representer(_Vaulted, _represent)
_COMPARISON = """\
- hosts: ctl1
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.assert:
        that: lookup('ansible.builtin.vars', item.key) == item.value
        quiet: true
      loop: "{{ expected | dict2items }}"
      loop_control: {label: "{{ item.key }}"}
"""


def test_what_is_encrypted_by_itself_is_what_roles_get(tmp_path: Path) -> None:
    """The generated inventory is read after the site's own, and takes nothing away from it."""
    password, playbook, generated = (
        tmp_path / name for name in ("password", "playbook.yml", "generated.json")
    )
    password.write_text("word\n")
    vaulted = _Vaulted(_encrypted(password, _PLANTED))
    values, expected = (
        {name: list(leaves(options()[name].spec, text))[-1] for name in secret_options()}
        for text in (vaulted, Text(_PLANTED))
    )
    inventory = write_site(tmp_path, _INVENTORY)
    (tmp_path / "group_vars/all.yml").write_text(yaml.dump(values, Dumper=_Dumper))
    (tmp_path / "expected.json").write_text(json.dumps({"expected": expected}))
    playbook.write_text(_COMPARISON)
    site = read_site(inventory, vault_password_file=password)
    write_inventory(generated, site, build_plan(site), {})
    assert _PLANTED not in generated.read_text()
    command: list[str | Path] = [
        _PROGRAMS / "ansible-playbook",
        "--inventory",
        inventory,
        "--inventory",
        generated,
        playbook,
    ]
    command += ["--vault-password-file", password, "--extra-vars", f"@{tmp_path}/expected.json"]
    environment = os.environ | {"ANSIBLE_LOCAL_TEMP": str(tmp_path / "local"), "ANSIBLE_FORCE_COLOR": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("=> (item=") == len(values)
