"""What is to be typed again is what was typed: the same hosts, the same variables, the same login."""

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from deploy.cli import cluster as verb
from deploy.cli.app import VERBS
from deploy.engine import consent
from deploy.engine.next_command import next_command
from deploy.engine.options import Options
from deploy.engine.preview import Previewed
from deploy.engine.rolling import _only
from deploy.engine.story import Story
from deploy.errors import DeployError
from deploy.judge.preview import preview_of
from deploy.judge.summary import Summary, summarize
from deploy.run.events import HostStats
from deploy.show.plain import PlainDisplay
from deploy.site.inventory import Site
from tests.unit.engine.machines import run_on
from tests.unit.judge.test_preview import RUNNING, asked, changed, loss
from tests.unit.show.runs import ended, stats

_SITE = Site(Path("inventory.ini"), {}, {})
_TYPED = {
    "limit": ("--limit", "node1,!gpu[1-2]"),
    "tags": ("--tags", "munge"),
    "skip_tags": ("--skip-tags", "install"),
    "user": ("--user", "ops"),
    "private_key": ("--private-key", "/keys/my key"),
    "ask_pass": ("--ask-pass",),
    "ask_become_pass": ("--ask-become-pass",),
    "forks": ("--forks", "3"),
    "plain_ansible": ("--plain-ansible",),
    "extra": ("-e", "slurmctld_cluster_name=other"),
    "vault_password_file": ("--vault-password-file", __file__),
    "full": ("--full",),
    "new_secrets": ("--new-secrets",),
    "rotate": ("--rotate", "munge_key"),
    "batch": ("--batch", "10%"),
}
_OTHERWISE = {
    "inventory": "it is there anyway",
    "check": "what changed nothing is done in earnest by what is typed next",
    "diff": "how it is shown",
    "verbose": "how it is shown",
    "output": "how it is shown",
    "validates": "what comes after a run that changed something",
    "yes": "what a refused run was not given",
}


def _options(monkeypatch: pytest.MonkeyPatch, *words: str) -> Options:
    """What the verb makes of the words."""
    made: list[Options] = []

    def keep(_: Path, options: Options, *__: Any, **___: Any) -> None:  # noqa: ANN401
        made.append(options)
        raise typer.Exit

    monkeypatch.setattr(verb, "deploy_cluster", keep)
    monkeypatch.setattr("deploy.engine.rolling.deploy_in_batches", keep)
    monkeypatch.setattr("getpass.getpass", lambda _: "s3cret")
    command = next(known for known in VERBS if known.name == "cluster").load()
    command.main(["inventory.ini", *words], standalone_mode=False)
    return made[0]


def _parameters() -> set[str]:
    command = next(known for known in VERBS if known.name == "cluster").load()
    return {str(parameter.name) for parameter in command.params}


def test_every_option_is_typed_again_or_said_why_not() -> None:
    assert _parameters() == _TYPED.keys() | _OTHERWISE.keys()


def _summary(**of_node1: int) -> Summary:
    return summarize([stats(node1=HostStats(**of_node1)), ended()], ("node1",))


@pytest.mark.parametrize("name", _TYPED)
def test_whoever_is_to_run_it_again_is_told_all_that_was_typed(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = _TYPED[name]
    options = _options(monkeypatch, *words)
    run = run_on(_SITE, options, place=tmp_path)
    typed = shlex.join(words)
    assert typed in run.again()
    assert typed in next_command(run, _summary(failed=1), is_refused=False)
    elsewhere = next_command(run, _summary(unreachable=1), is_refused=False)
    assert ("--limit node1 " if name == "limit" else typed) in elsewhere


def test_a_refused_run_is_told_what_was_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    preview = preview_of([asked(RUNNING), changed("ctl1", kind="restart", guarded=[loss()])])
    story = Story()
    story.keep(changed("ctl1", kind="restart"), stats(ctl1=HostStats(changed=1)), ended())
    seen = Previewed(preview, story)
    monkeypatch.setattr(consent, "previewed", lambda *_: seen)
    run = run_on(_SITE, Options(limit="ctl1", user="ops"), place=tmp_path)
    work = SimpleNamespace(
        plan=SimpleNamespace(hosts=("ctl1",)), fresh=frozenset(), without_fresh=lambda _: None
    )
    with pytest.raises(DeployError) as refused:
        consent.permission(run, work, PlainDisplay(lambda _: None), lambda: False)  # type: ignore[arg-type]
    assert refused.value.findings[0].hint.endswith(f"{run.inventory} --limit ctl1 --user ops --yes")


def test_hosts_that_were_left_out_stay_out(tmp_path: Path) -> None:
    run = run_on(_SITE, Options(limit="all,!node2"), place=tmp_path)
    assert "--limit 'all,!node2,!node1'" in next_command(run, _summary(failed=1), is_refused=True)


@pytest.mark.parametrize(
    "text",
    [
        *("munge_key=s3cret", '{"site_token": "s3cret"}', "ansible_password=s3cret"),
        """ansible_ssh_common_args='-oProxyCommand="sshpass -p s3cret ssh bastion"'""",
        "bootstrap_mirror=https://user:s3cret@mirror.example.org",
    ],
)
def test_no_value_that_may_be_secret_is_shown_and_what_is_shown_is_refused(text: str) -> None:
    assert Options(extra=(text,)).again() == " -e NAME=VALUE"


def test_of_a_batch_the_whole_is_typed_again() -> None:
    whole = Options(batch="2", limit="all,!node9")
    assert _only(whole, ["node1", "node2"]).again() == " --limit 'all,!node9' --batch 2"
