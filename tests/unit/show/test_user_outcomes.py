from dataclasses import asdict, replace

from deploy.judge.user_outcome import Outcome, Verdict
from deploy.show.user_outcomes import as_json, changed, line, table

GOOD = Outcome("sinfo", "alice", "sinfo", ("exit 0",), Verdict.AS_EXPECTED, exit=0, seconds=0.5)
BAD = Outcome("job", "bob", "sbatch x", ("exit 0",), Verdict.DIFFERENT, ("exit code 1, not 0: no",), 1, "no")
OUT = Outcome("cuda", "bob", "nvcc", ("exit 0",), Verdict.LEFT_OUT, ("it wants a GPU",))


def test_lines() -> None:
    assert [line(outcome) for outcome in (GOOD, BAD, OUT)] == [
        "ok         sinfo (exit 0, 0.5 s)",
        "DIFFERENT  job: exit code 1, not 0: no",
        "left out   cuda: it wants a GPU",
    ]


def test_table() -> None:
    assert list(table([GOOD, BAD, OUT])) == [
        "command  user   came out   seen    seconds",
        "sinfo    alice  ok         exit 0  0.5",
        "job      bob    DIFFERENT  exit 1  0.0",
        "cuda     bob    left out",
        "",
        "3 commands: 1 as expected, 1 different, 1 left out",
    ]


def test_changes() -> None:
    before, after = ({"job": asdict(outcome)} for outcome in (replace(BAD, verdict=Verdict.LEFT_OUT), BAD))
    assert list(changed(after, after)) == ["nothing came out in another way than before"]
    assert list(changed(before, after)) == ["changed: job: before left out; now different, exit 1"]


def test_data() -> None:
    data = as_json({"slurm": "24.11"}, [BAD])
    assert data["slurm"] == "24.11"
    assert data["commands"][0]["id"] == "job"
    assert data["commands"][0]["verdict"] == "different"
