"""The controller serves what was declared, takes changes its own way, never a configuration it rejects."""

import re
from collections.abc import Iterator

import pytest

from molecule.conftest import MACHINES, Converge, On

DECLARED = {
    "node1|8|2:2:2|7000|gpu:a100:2,gpu:t4:1,shard:12|big,fast,a100,t4|5|batch*",
    "node1|8|2:2:2|7000|gpu:a100:2,gpu:t4:1,shard:12|big,fast,a100,t4|5|gpu",
    "node2|2|2:1:1|3000|(null)|(null)|1|batch*",
}
REFUSAL = "slurmctld rejects the new configuration, so nothing was changed"
# Before 23.11 Slurm reads no range with something behind it.
ADDED = {f"{name}|4|4:1:1|2000|(null)|(null)|1|batch*" for name in ("n1-ib", "n2-ib", "node3")}


def nodes(on: On, machine: str) -> set[str]:
    shown = on(machine, "sinfo", "--Node", "--noheader", "--format=%N|%c|%z|%m|%G|%f|%w|%P").stdout
    return set(shown.splitlines())


def entered(on: On, machine: str) -> str:
    """When systemd last started the daemon."""
    name = "--property=ActiveEnterTimestampMonotonic"
    return on(machine, "systemctl", "show", "slurmctld", name, "--value").stdout


def settings(on: On, machine: str) -> dict[str, str]:
    lines = on(machine, "scontrol", "show", "config").stdout.splitlines()
    return {key.strip(): value.strip() for key, equals, value in (line.partition("=") for line in lines)}


def test_controller_is_up(on: On, machine: str) -> None:
    assert (
        on(machine, "scontrol", "ping").stdout
        == f"Slurmctld(primary) at molecule-slurmctld-{machine} is UP\n"
    )


def test_nodes_and_partitions_are_the_declared_ones(on: On, machine: str) -> None:
    assert nodes(on, machine) == DECLARED
    shown = on(machine, "sinfo", "--noheader", "--format=%R|%l|%h").stdout
    assert set(shown.splitlines()) == {"batch|1-00:00:00|NO", "gpu|infinite|EXCLUSIVE"}
    assert "DefMemPerCPU=875" in on(machine, "scontrol", "show", "partition", "batch").stdout
    assert (
        "JobDefaults=DefCpuPerGPU=1,DefMemPerGPU=400"
        in on(machine, "scontrol", "show", "partition", "gpu").stdout
    )


def test_settings_are_in_force(on: On, machine: str) -> None:
    shown = settings(on, machine)
    assert shown["ClusterName"] == "lab"
    assert shown["ProctrackType"] == "proctrack/cgroup"
    assert shown["SelectTypeParameters"] == "CR_CORE_MEMORY"
    assert shown["GresTypes"] == "gpu,shard"
    assert "enable_configless" in shown["SlurmctldParameters"]


@pytest.mark.parametrize(
    ("partitions", "time", "is_taken"),
    [("batch", "2-0", False), ("gpu", "2-0", True), ("batch,gpu", "2-0", True), ("batch", "0-1", True)],
)
def test_a_job_is_refused_that_none_of_its_partitions_could_run(
    on: On, machine: str, partitions: str, time: str, *, is_taken: bool
) -> None:
    words = ("--parsable", "--partition", partitions, "--time", time, "--wrap", "true")
    answer = on(machine, "sbatch", *words, check=False)
    assert (answer.returncode == 0) == is_taken, answer.stderr
    if is_taken:
        on(machine, "scancel", answer.stdout.strip())
    else:
        assert "Requested time limit is invalid" in answer.stderr


def test_the_fabric_is_a_tree(on: On, machine: str) -> None:
    assert settings(on, machine)["TopologyPlugin"] == "topology/tree"
    shown = on(machine, "scontrol", "show", "topology").stdout
    found = dict(re.findall(r"SwitchName=(\S+) Level=\d+ LinkSpeed=\d+ Nodes=(\S+)", shown))
    assert found == {"leaf1": "node1", "leaf2": "node2", "top": "node[1-2]"}


def test_blocks_in_its_place(converge: Converge) -> None:
    """Slurm 22.05 knows no blocks, which its slurmctld says before anything changes."""
    answer = converge(
        "--check",
        "--diff",
        tags="configure,service",
        slurmctld_switches=[],
        slurmctld_blocks=[{"name": "b1", "nodes": ["node1"]}, {"name": "b2", "nodes": ["node2"]}],
        slurmctld_block_sizes=[1, 2],
        slurmctld_topology_nodes={"b1": "node1", "b2": "node2"},
    )
    said = answer.stdout + answer.stderr
    assert said.count("+BlockName=b2 Nodes=node2") == 1, said
    assert f"{REFUSAL}: error: Couldn't find the specified plugin name for topology/block" in said


def test_licenses_are_counted(on: On, machine: str) -> None:
    assert "matlab" in on(machine, "scontrol", "show", "licenses").stdout
    job = on(machine, "sbatch", "--parsable", "--hold", "--licenses=matlab:3", "--wrap=true").stdout.strip()
    on(machine, "scancel", job)
    for wrong in ("matlab:4", "octave"):
        refused = on(machine, "sbatch", "--hold", f"--licenses={wrong}", "--wrap=true", check=False)
        assert refused.returncode != 0, refused.stdout


def test_jobs_may_take_the_place_of_others(on: On, machine: str) -> None:
    shown = settings(on, machine)
    assert (shown["PreemptType"], shown["PreemptMode"]) == ("preempt/partition_prio", "REQUEUE")
    assert shown["PreemptExemptTime"] == "00:05:00"
    assert shown["DependencyParameters"] == "kill_invalid_depend"


def test_the_sites_script_sees_every_job(on: On, machine: str) -> None:
    job = on(machine, "sbatch", "--parsable", "--hold", "--wrap=true").stdout.strip()
    assert "TimeLimit=01:00:00" in on(machine, "scontrol", "show", "job", job).stdout
    on(machine, "scancel", job)
    refused = on(machine, "sbatch", "--hold", "--comment=forbidden", "--wrap=true", check=False)
    assert refused.returncode != 0
    assert "ask the admins" in refused.stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"submit_lua": "function slurm_job_submit(\n"}, "job_submit.lua:"),
        ({"submit_lua": "x = 1\n"}, "job_submit.lua defines no function slurm_job_submit"),
        ({"submit_lua": "while true do end\n"}, "it does not end within 20 s"),
        (
            {"submit_expects": "refused"},
            "a job without a time: it is accepted, and should be refused",
        ),
    ],
)
def test_a_script_that_is_wrong_is_not_put_in_place(
    converge: Converge, variables: dict[str, str], expected: str
) -> None:
    answer = converge("--check", tags="configure,service", **variables)
    assert (answer.stdout + answer.stderr).count(expected) >= len(MACHINES), answer.stdout + answer.stderr


def test_what_users_type_is_seen_where_they_type_it(on: On) -> None:
    machine = "trixie"
    job = on(machine, "sbatch", "--parsable", "--hold", "--wrap=true").stdout.strip()
    assert "Comment=by default" in on(machine, "scontrol", "show", "job", job).stdout
    on(machine, "scancel", job)
    for command in (["sbatch", "--wrap=true"], ["srun", "true"], ["salloc", "true"]):
        refused = on(machine, command[0], "--job-name=forbidden", *command[1:], check=False)
        assert refused.returncode != 0, refused.stdout
        assert f"{command[0]}: no job of this name" in refused.stderr


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"filter_lua": "x = = 1\n"}, "cli_filter.lua:1: unexpected symbol near '='"),
        ({"filter_lua": "x = 1\n"}, "missing required function slurm_cli_setup_defaults"),
        ({"filter_lua": "while true do end\n"}, "sbatch --wrap=true does not end within 20 s"),
        (
            {"filter_expects": "accepted"},
            "a name that is refused: it is refused (srun: error: lua: srun: no job of this name)",
        ),
    ],
)
def test_a_filter_that_is_wrong_is_not_put_in_place(
    converge: Converge, variables: dict[str, str], expected: str
) -> None:
    answer = converge("--check", tags="configure,service", **variables)
    assert expected in answer.stdout + answer.stderr


def test_a_filter_that_would_not_come_to_login_nodes_is_refused(converge: Converge) -> None:
    answer = converge("--check", tags="configure,service", filter_lua="x = 1\n")
    said = answer.stdout + answer.stderr
    assert "slurmctld_cli_filter_lua takes Slurm 24.11 or later, and here is 22.05.8" in said


_PRIVATE = {
    "name": "node3",
    "address": "127.0.0.13",
    "hardware": {"cpus": 4, "memory_mb": 2000},
    "scratch": {"directory": "/var/tmp", "private": ["/tmp"]},
}


@pytest.mark.parametrize(
    ("variables", "setting", "written"),
    [
        (
            {"slurmctld_gres_autodetect": "nvidia"},
            "slurmctld_gres_autodetect: nvidia takes Slurm 24.11 or later",
            "+NodeName=node1 AutoDetect=nvidia",
        ),
        (
            {"slurmctld_gres_autodetect": "nvml"},
            "slurmctld_gres_autodetect: nvml, or mig_layout takes Slurm 23.02 or later",
            "+NodeName=node1 AutoDetect=nvml",
        ),
        (
            {"more_nodes": [_PRIVATE]},
            "scratch_private_directories takes Slurm 23.02 or later",
            "+NodeName=node3 AutoBasePath=true BasePath=/var/tmp Dirs=/tmp",
        ),
    ],
)
def test_what_slurm_does_not_know_is_refused_before_anything_changes(
    on: On, converge: Converge, variables: dict[str, object], setting: str, written: str
) -> None:
    before = on("bookworm", "sha256sum", "/etc/slurm/gres.conf", "/etc/slurm/job_container.conf").stdout
    for check in (["--check"], []):
        answer = converge(*check, "--diff", only="bookworm", tags="configure,service", **variables)
        said = answer.stdout + answer.stderr
        assert answer.returncode == 2, said
        assert f"nothing was changed: {setting}, and here is 22.05.8" in said
        after = on("bookworm", "sha256sum", "/etc/slurm/gres.conf", "/etc/slurm/job_container.conf").stdout
        assert after == before
    answer = converge("--check", "--diff", only="trixie", tags="configure,service", **variables)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.count(written) == 1, answer.stdout


def test_set_times_where_packages_have_no_scrontab_are_refused(converge: Converge) -> None:
    answer = converge("--check", "--diff", tags="configure,service", slurmctld_scrontab=True)
    said = answer.stdout + answer.stderr
    assert re.findall(r"fatal: \[molecule-slurmctld-(\w+)\]", said) == ["bookworm"], said
    assert "have no scrontab" in said
    assert said.count("+ScronParameters=enable") == 1


def test_types_of_gpus_are_features(on: On, machine: str) -> None:
    job = on(machine, "sbatch", "--parsable", "--hold", "--constraint=t4", "--wrap=true").stdout.strip()
    on(machine, "scancel", job)
    refused = on(machine, "sbatch", "--hold", "--constraint=h100", "--wrap=true", check=False)
    assert refused.returncode != 0, refused.stdout


def test_who_asks_for_a_mail_is_told_that_none_will_come(on: On, machine: str) -> None:
    told = {}
    for option in ("--mail-type=END,FAIL", "--mail-type=NONE", "--comment=x"):
        answer = on(machine, "sbatch", "--parsable", "--hold", option, "--wrap=true")
        on(machine, "scancel", answer.stdout.strip())
        told[option] = answer.stderr
    assert "no mail will come" in told.pop("--mail-type=END,FAIL")
    assert set(told.values()) == {""}


def test_devices_of_gpus_are_numbered_through(on: On, machine: str) -> None:
    lines = on(machine, "cat", "/etc/slurm/gres.conf").stdout.splitlines()
    assert lines[1:] == [
        "AutoDetect=off",
        "NodeName=node1 Name=gpu Type=a100 File=/dev/nvidia[0-1]",
        "NodeName=node1 Name=gpu Type=t4 File=/dev/nvidia2",
        "NodeName=node1 Name=shard Count=12",
    ]


def test_only_nodes_with_gpus_look_for_them(converge: Converge) -> None:
    answer = converge(
        "--check", "--diff", only="trixie", tags="configure,service", slurmctld_gres_autodetect="nvml"
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    added = re.findall(r"^\+(.*AutoDetect.*)$", answer.stdout, re.MULTILINE)
    assert added == ["NodeName=node1 AutoDetect=nvml"]


def test_a_job_may_ask_for_room_on_the_nodes_disk(on: On, machine: str) -> None:
    assert settings(on, machine)["TmpFS"] == "/var/tmp"
    job = on(machine, "sbatch", "--parsable", "--tmp=1G", "--wrap=true").stdout.strip()
    on(machine, "scancel", job)
    refused = on(machine, "sbatch", "--parsable", "--tmp=3G", "--wrap=true", check=False)
    assert "Requested node configuration is not available" in refused.stderr


def test_parameter_with_an_empty_value_is_not_written(on: On, machine: str) -> None:
    lines = on(machine, "cat", "/etc/slurm/slurm.conf").stdout.splitlines()
    assert "AuthType=auth/munge" in lines
    assert [line for line in lines if line.startswith("AccountingStorage")] == []


def test_it_runs_as_slurm_and_starts_with_the_machine(on: On, machine: str) -> None:
    daemon = on(machine, "systemctl", "show", "slurmctld", "--property=MainPID", "--value").stdout.strip()
    assert on(machine, "ps", "-o", "user=,comm=", daemon).stdout.split() == ["slurm", "slurmctld"]
    assert on(machine, "systemctl", "is-enabled", "slurmctld").stdout == "enabled\n"
    assert on(machine, "stat", "--format=%U %a", "/var/spool/slurmctld").stdout == "slurm 755\n"


def test_what_somebody_disabled_starts_with_the_machine_again(on: On, converge: Converge) -> None:
    for name in MACHINES:
        on(name, "systemctl", "disable", "slurmctld")
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert {on(name, "systemctl", "is-enabled", "slurmctld").stdout for name in MACHINES} == {"enabled\n"}


def test_scripts_that_are_declared_no_more_are_gone(on: On, converge: Converge) -> None:
    try:
        answer = converge(
            tags="configure,service",
            filter_lua="",
            submit_lua="",
            slurmctld_job_submit_examples=[],
            more_parameters={"MailProg": "/bin/true"},
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        for name in MACHINES:
            assert on(name, "sh", "-c", "ls /etc/slurm/*.lua", check=False).stdout == ""
            job = on(name, "sbatch", "--parsable", "--hold", "--job-name=forbidden", "--wrap=true")
            on(name, "scancel", job.stdout.strip())
    finally:
        answer = converge(tags="configure,service")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in MACHINES:
        assert on(name, "ls", "/etc/slurm/job_submit.lua").returncode == 0
    assert on("trixie", "ls", "/etc/slurm/cli_filter.lua").returncode == 0


def test_a_profile_of_scheduling_is_read_without_a_restart(on: On, converge: Converge) -> None:
    started = {name: entered(on, name) for name in MACHINES}
    try:
        answer = converge(
            tags="configure,service",
            slurmctld_scheduling_profile="large_jobs",
            more_parameters={"SchedulerParameters": "bf_resolution=300"},
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        for name in MACHINES:
            shown = settings(on, name)
            # A partition has no longest time.
            assert shown["SchedulerParameters"] == "bf_continue,bf_window=10080,bf_resolution=300"
            assert (shown["PriorityWeightJobSize"], shown["PriorityWeightFairShare"]) == ("10000", "10000")
    finally:
        answer = converge(tags="configure,service")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in MACHINES:
        shown = settings(on, name)
        assert (shown["SchedulerParameters"], shown["PriorityWeightJobSize"]) == ("(null)", "1000")
        assert entered(on, name) == started[name]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("throughput", "+SchedulerParameters=batch_sched_delay=20,bf_continue,bf_interval=300,"),
        ("fair_share", "+PriorityDecayHalfLife=14-0\n"),
        ("fair_share", "+PriorityWeightFairshare=100000\n"),
    ],
)
def test_other_profiles_are_what_slurm_takes(converge: Converge, profile: str, expected: str) -> None:
    answer = converge("--check", "--diff", tags="configure,service", slurmctld_scheduling_profile=profile)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.count(expected) == len(MACHINES), answer.stdout


_SWITCHES = {
    "slurmctld_suspend_program": {"text": "#!/bin/sh\nexit 0\n"},
    "slurmctld_resume_program": {"text": "#!/bin/sh\nexit 1\n"},
    "slurmctld_suspend_time": 86400,
    "more_nodes": [
        {
            "name": f"c{number}",
            "address": f"127.0.0.2{number}",
            "hardware": {"cpus": 2, "memory_mb": 1000},
            "scratch": {"directory": "/var/tmp"},
            "power_saving": kind,
        }
        for number, kind in ((1, "cloud"), (2, "cloud"), (3, "machine"))
    ],
}


_SAVES = "trixie"
"""The release whose Slurm can be told which nodes to leave on."""


def test_nodes_are_switched_by_the_sites_programs(on: On, converge: Converge) -> None:
    place, command = "/usr/local/lib/slurm_power", "/usr/local/sbin/deploy-power-saving"
    timer = "deploy-power-saving.timer"
    try:
        answer = converge(tags="configure,service", **_SWITCHES)
        said = answer.stdout + answer.stderr
        assert re.findall(r"fatal: \[molecule-slurmctld-(\w+)\]", said) == ["bookworm"], said
        assert "slurmd_power_saving takes Slurm 23.02 or later, and here is 22.05.8" in said
        shown = settings(on, _SAVES)
        assert shown["SuspendProgram"] == f"{place}/suspend"
        assert shown["ResumeProgram"] == f"{place}/resume"
        assert shown["SuspendTime"] == "86400 sec"
        assert "cloud_dns" in shown["SlurmctldParameters"]
        assert on(_SAVES, "stat", "--format=%U %a", f"{place}/resume").stdout == "root 755\n"
        states = on(_SAVES, "sinfo", "--Node", "--noheader", "--format=%N %t", "--nodes=c[1-3]").stdout
        assert {line.split()[0]: line[-1] == "~" for line in states.splitlines()} == {
            "c1": True,
            "c2": True,
            "c3": False,
        }
        assert on(_SAVES, "systemctl", "is-active", timer).stdout == "active\n"
        conf = on(_SAVES, "cat", "/etc/slurm/slurm.conf").stdout
        (everybody,) = re.findall(r"^SuspendExcNodes=(.*)", conf, re.MULTILINE)
        assert everybody.startswith("node1,node2,c")
        on(_SAVES, "systemctl", "start", "deploy-power-saving.service")
        assert settings(on, _SAVES)["SuspendExcNodes"] == "node1,node2"
        # While a run needs the nodes, and when that has ended.
        on(_SAVES, "flock", "--shared", "/run/deploy-nodes.lock", command)
        assert settings(on, _SAVES)["SuspendExcNodes"] == everybody
        on(_SAVES, "systemctl", "start", "deploy-power-saving.service")
        assert settings(on, _SAVES)["SuspendExcNodes"] == "node1,node2"
        # A slurmctld that starts leaves all nodes on.
        on(_SAVES, "systemctl", "stop", timer)
        on(_SAVES, "systemctl", "restart", "slurmctld")
        assert settings(on, _SAVES)["SuspendExcNodes"] == everybody
        on(_SAVES, "systemctl", "start", timer)
        answer = converge(tags="configure,service", **_SWITCHES)
        assert answer.stdout.count("changed=0") == len(MACHINES), answer.stdout
        converge(tags="configure,service", slurmctld_cloud_addresses="registered", **_SWITCHES)
        assert settings(on, _SAVES)["SlurmctldParameters"] == "enable_configless"
        log = on(_SAVES, "cat", "/var/log/slurm/slurmctld.log").stdout
        assert "is defunct" not in log, log
    finally:
        answer = converge(tags="configure,service")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in MACHINES:
        assert settings(on, name)["SuspendProgram"] == "(null)"
        for path in (place, command, f"/etc/systemd/system/{timer}"):
            assert on(name, "test", "-e", path, check=False).returncode == 1


def test_a_program_that_others_could_change_is_refused(on: On, converge: Converge) -> None:
    for name in MACHINES:
        on(name, "install", "-D", "--mode=0777", "/dev/null", "/opt/resume")
    said = {"slurmctld_resume_program": {"path": "/opt/resume"}}
    answer = converge(tags="configure,service", **{**_SWITCHES, **said})
    told = answer.stdout + answer.stderr
    assert "slurmctld_resume_program is /opt/resume, and others than root can change" in told
    for name in MACHINES:
        assert settings(on, name)["ResumeProgram"] == "(null)"


def test_rejected_configuration_changes_nothing(on: On, converge: Converge) -> None:
    before = {name: (on(name, "cat", "/etc/slurm/slurm.conf").stdout, entered(on, name)) for name in MACHINES}
    answer = converge(tags="configure,service", more_parameters={"SelectType": "select/no_such_plugin"})
    assert answer.returncode == 2, answer.stdout + answer.stderr
    refused = re.findall(rf"fatal: \[molecule-slurmctld-(\w+)\].*{REFUSAL}.*no_such_plugin", answer.stderr)
    assert sorted(refused) == MACHINES
    for name, (text, started) in before.items():
        assert on(name, "cat", "/etc/slurm/slurm.conf").stdout == text
        assert entered(on, name) == started
        assert on(name, "scontrol", "ping").stdout.endswith(" is UP\n")


@pytest.fixture
def waiting(on: On) -> Iterator[dict[str, str]]:
    """A job that waits, by machine."""
    jobs = {name: on(name, "sbatch", "--parsable", "--wrap", "true").stdout.strip() for name in MACHINES}
    yield jobs
    for name, job in jobs.items():
        on(name, "scancel", job)


def test_the_queue_is_not_left_behind_unasked(on: On, converge: Converge, waiting: dict[str, str]) -> None:
    before = {name: (on(name, "cat", "/etc/slurm/slurm.conf").stdout, entered(on, name)) for name in MACHINES}
    answer = converge(tags="configure,service", more_parameters={"StateSaveLocation": "/var/spool/elsewhere"})
    assert answer.returncode == 2, answer.stdout + answer.stderr
    said = r"nothing was changed: StateSaveLocation .* would lose jobs"
    refused = re.findall(rf"fatal: \[molecule-slurmctld-(\w+)\].*{said} (\d+)\.", answer.stderr)
    assert dict(refused) == waiting
    for name, (text, started) in before.items():
        assert on(name, "cat", "/etc/slurm/slurm.conf").stdout == text
        assert entered(on, name) == started


def test_the_queue_goes_along_and_comes_back(on: On, converge: Converge, waiting: dict[str, str]) -> None:
    for place in ("/var/spool/elsewhere", "/var/spool/slurmctld"):
        answer = converge(tags="configure,service", slurmctld_state_save_location=place)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        for name, job in waiting.items():
            assert on(name, "squeue", "--noheader", "--format=%i").stdout.split() == [job]
            assert f"= {place}\n" in on(name, "scontrol", "show", "config").stdout


@pytest.fixture
def started_before_the_node_came(on: On, converge: Converge) -> Iterator[dict[str, str]]:
    started = {name: entered(on, name) for name in MACHINES}
    alike = {"hardware": {"cpus": 4, "memory_mb": 2000}, "scratch": {"directory": "/var/tmp"}}
    named = {"node3": "127.0.0.13", "n1-ib": "127.0.0.14", "n2-ib": "127.0.0.15"}
    added = [{"name": name, "address": address, **alike} for name, address in named.items()]
    answer = converge(tags="configure,service", more_nodes=added)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    yield started
    answer = converge(tags="configure,service")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_added_node_is_taken_with_a_restart_only_where_slurm_needs_one(
    on: On, started_before_the_node_came: dict[str, str]
) -> None:
    for name in MACHINES:
        assert nodes(on, name) == DECLARED | ADDED
    assert entered(on, "trixie") == started_before_the_node_came["trixie"]
    assert entered(on, "bookworm") != started_before_the_node_came["bookworm"]


def test_a_node_does_not_leave_unasked_while_jobs_wait_for_it_by_name(
    on: On, converge: Converge, started_before_the_node_came: dict[str, str]
) -> None:
    ask = ("sbatch", "--parsable", "--nodelist=node3", "--wrap", "true")
    jobs = {name: on(name, *ask).stdout.strip() for name in started_before_the_node_came}
    answer = converge(tags="configure,service")
    said = r"nothing was changed: NodeName n1-ib,n2-ib,node3 ->  would lose jobs"
    refused = re.findall(rf"fatal: \[molecule-slurmctld-(\w+)\].*{said} (\d+)\.", answer.stderr)
    assert dict(refused) == jobs, answer.stdout + answer.stderr
    for name, job in jobs.items():
        assert on(name, "squeue", "--noheader", "--format=%T", "--jobs", job).stdout == "PENDING\n"
        on(name, "scancel", job)
