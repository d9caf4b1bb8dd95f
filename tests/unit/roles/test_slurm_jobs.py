from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/slurm_jobs.py")


def test_jobs_of_squeue() -> None:
    text = "12|RUNNING|alice|batch|node[1-2]|\n13_[4-9]|PENDING|bob|batch,big||node[4-5]\n"
    text += "slurm_load_jobs error: no\n"
    assert module.parse_jobs(text) == [
        {
            "id": "12",
            "state": "RUNNING",
            "user": "alice",
            "partition": "batch",
            "nodes": "node[1-2]",
            "required": "",
        },
        {
            "id": "13_[4-9]",
            "state": "PENDING",
            "user": "bob",
            "partition": "batch,big",
            "nodes": "",
            "required": "node[4-5]",
        },
    ]


def test_version() -> None:
    assert module.parse_version("slurm-wlm 24.11.5\n") == "24.11.5"
    assert module.parse_version("") == ""


def test_no_jobs() -> None:
    assert module.parse_jobs("") == []


def test_another_controller_answers_where_the_first_one_is_down() -> None:
    one, two = "SlurmctldHost=ctl1\n", "SlurmctldHost=ctl1(10.0.0.1)\nslurmctldhost = ctl2\n"
    assert module.may_answer(one, runs_here=True)
    assert not module.may_answer(one, runs_here=False)
    assert module.may_answer(two, runs_here=False)
