"""What an upgrade came to, for people and for programs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.engine import proofs as module
from deploy.engine.options import Options
from deploy.engine.proofs import Proof, Proofs
from deploy.engine.trial import Trial
from deploy.errors import ExitCode
from deploy.judge.upgrade_outcome import Fate, Outcome
from deploy.judge.user_outcome import Outcome as Typed
from deploy.judge.user_outcome import Verdict
from deploy.show.upgrade import as_json, command_lines, upgrade_lines
from deploy.show.upgrade_page import as_html
from deploy.validate.result import Judged, Validation, failed, passed

SCRIPT = "<script>alert(1)</script>"
JOBS = (Fate("7", "RUNNING", "COMPLETED"), Fate("8", "RUNNING", "NODE_FAIL", SCRIPT))
REHEARSAL = {"seconds": 3.5, "bytes": 5 << 20, "needed": 1, "counts": {"lab_job_table": 12}}
CAME = Outcome(
    "26.05",
    {"ctl1": "24.11.5-4", "node1": "24.11.5-4"},
    95.0,
    backup="/var/backups/deploy/slurm-24.11-1",
    rehearsal=REHEARSAL,
    done=("ctl1", "node1"),
    jobs=JOBS,
    submitted=90,
    silence=12.0,
)
UNHURT = Outcome("26.05", {"ctl1": "24.11.5-4"}, 95.0, done=("ctl1",), jobs=JOBS[:1])

COMMANDS = """
guide: g
shared: [/home]
commands:
  - id: sinfo
    guide: {file: g.md, heading: h}
    wording: verbatim
    user: alice
    run: sinfo
    expect: {exit: 0}
"""


def validation(*, works: bool) -> Validation:
    result = passed("runs", "node1") if works else failed(SCRIPT, "node1", hint="look")
    return Validation("lab", 0.0, 30.0, (Judged("job", "a job runs", (result,)),))


def typed(verdict: Verdict) -> Trial:
    return Trial({}, (Typed("sinfo", "alice", "sinfo", (), verdict, exit=0),))


SAME = Proofs(
    Proof(validation(works=True), typed(Verdict.AS_EXPECTED)),
    Proof(validation(works=True), typed(Verdict.AS_EXPECTED)),
)
WORSE = Proofs(
    Proof(validation(works=False), typed(Verdict.DIFFERENT)),
    Proof(validation(works=True), typed(Verdict.AS_EXPECTED)),
)
GONE_ON = Proofs(Proof(validation(works=True)))


def test_in_a_few_lines() -> None:
    assert next(upgrade_lines(CAME)) == "Slurm 24.11.5-4 -> 26.05 on ctl1,node1 in 95 s"
    assert "  job 8: <script>alert(1)</script>" in list(upgrade_lines(CAME))
    assert list(command_lines(SAME))[-1] == "what users type comes out as before"
    assert "sinfo: as expected, exit 0 before, different, exit 0 now" in list(command_lines(WORSE))
    assert list(command_lines(GONE_ON)) == []


def test_jobs_that_are_not_known_are_not_none() -> None:
    came = replace(UNHURT, jobs=(), unknown="squeue does not say which jobs there are: timed out")
    assert f"users' jobs: {came.unknown}" in list(upgrade_lines(came))
    assert came.unknown in as_html(came, None)
    assert "0 lost" not in as_html(came, None)
    assert as_json(came, None)["exit_code"] == ExitCode.FAILED


@pytest.mark.parametrize(
    ("came", "proofs", "code"),
    [
        (UNHURT, None, ExitCode.OK),
        (UNHURT, SAME, ExitCode.OK),
        (UNHURT, GONE_ON, ExitCode.OK),
        (UNHURT, WORSE, ExitCode.FAILED),
        (CAME, SAME, ExitCode.FAILED),
        (CAME, None, ExitCode.FAILED),
    ],
)
def test_for_programs(came: Outcome, proofs: Proofs | None, code: ExitCode) -> None:
    said = json.loads(json.dumps(as_json(came, proofs)))
    assert said["exit_code"] == code
    assert len(said["hurt"]) == len(came.hurt)
    if proofs is WORSE:
        assert [change["check"] for change in said["validation"]["changes"]] == ["job"]
        assert [change["id"] for change in said["validation"]["commands"]] == ["sinfo"]
    if proofs is GONE_ON:
        assert said["validation"]["before"] is None
        assert said["validation"]["changes"] is None


@pytest.mark.parametrize("proofs", [None, SAME, WORSE, GONE_ON])
def test_the_page_says_all_of_it_and_escapes(proofs: Proofs | None) -> None:
    page = as_html(CAME, proofs)
    assert SCRIPT not in page
    assert "&lt;script&gt;" in page
    for text in ("12 s at the longest", "lab_job_table", "/var/backups/deploy/slurm-24.11-1", "1 lost"):
        assert text in page
    assert ("What users type" in page) == any(proofs is each for each in (SAME, WORSE))
    assert '"bad"' not in as_html(UNHURT, SAME)


def test_users_commands_are_typed_where_that_is_wished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inventory.ini").write_text("[slurm-master]\nctl1\n[slurm-login]\nlogin1\n")
    (tmp_path / "user-commands.yml").write_text(COMMANDS)
    monkeypatch.setattr(module, "validate_site", lambda *_, **__: validation(works=True))
    monkeypatch.setattr(module, "type_commands", lambda *_, **__: typed(Verdict.DIFFERENT))
    inventory = tmp_path / "inventory.ini"
    plain = module.prove(inventory, Options(), types_commands=False, progress=lambda _: None)
    assert plain.trial is None
    both = module.prove(inventory, Options(), types_commands=True, progress=lambda _: None)
    assert both.trial == typed(Verdict.DIFFERENT)
    # What a command of theirs does is compared, and no reason to begin nothing.
    assert both.exit_code is ExitCode.OK
