from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.roles.loading import load_module

conf = load_module("roles/slurmctld/module_utils/slurm_conf.py")
config = load_module("roles/slurmctld/library/slurmctld_config.py")

CONF = """\
# a comment
ClusterName=c
SlurmctldPort=6817
SlurmdTimeout=300   # trailing
SelectType=select/cons_tres
EnforcePartLimits=ALL
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageTRES=gres/gpu
StateSaveLocation=/var/spool/slurmctld
NodeName=node1 CPUs=2
PartitionName=batch Nodes=node1 QOS=part AllowAccounts=a,b Default=YES
"""


def files(conf: str = CONF, **others: str) -> dict[str, str]:
    return {"slurm.conf": conf, "gres.conf": "AutoDetect=off\n"} | others


def test_parse_keeps_node_and_partition_lines_apart() -> None:
    parsed = conf.parse_conf(CONF)
    assert parsed["slurmdtimeout"] == "300"
    assert parsed["nodename=node1"] == "CPUs=2"
    assert parsed["partitionname=batch"].startswith("Nodes=node1")


@pytest.mark.parametrize(
    ("change", "version", "action", "reason"),
    [
        (("SlurmdTimeout=300", "SlurmdTimeout=60"), (22, 5, 8), "reconfigure", "slurmdtimeout"),
        (("SlurmdTimeout=300", "SlurmdTimeout=60"), (24, 11, 5), "reconfigure", "slurmdtimeout"),
        (("NodeName=node1 CPUs=2", "NodeName=node1 CPUs=4"), (22, 5, 8), "restart", "nodename=node1"),
        (("NodeName=node1 CPUs=2", "NodeName=node1 CPUs=4"), (24, 11, 5), "reconfigure", "nodename=node1"),
        (("select/cons_tres", "select/linear"), (22, 5, 8), "restart", "selecttype"),
        (("select/cons_tres", "select/linear"), (23, 11, 0), "reconfigure", "selecttype"),
        (("SlurmctldPort=6817", "SlurmctldPort=7000"), (24, 11, 5), "restart", "slurmctldport"),
        (("Limits=ALL", "Limits=ANY"), (22, 5, 8), "reconfigure", "enforcepartlimits"),
        (("Nodes=node1 QOS", "Nodes=node1 State=DOWN QOS"), (22, 5, 8), "reconfigure", "partitionname=batch"),
    ],
)
def test_a_restart_only_where_slurm_needs_one(
    change: tuple[str, str], version: tuple[int, ...], action: str, reason: str
) -> None:
    assert config.decide(files(), files(CONF.replace(*change)), version) == (action, [reason])


def test_same_files_need_nothing() -> None:
    assert config.decide(files(), files(), (24, 11, 5)) == ("none", [])


def test_a_change_of_another_file_is_a_reconfigure() -> None:
    desired = files() | {"gres.conf": "AutoDetect=nvml\n"}
    assert config.decide(files(), desired, (24, 11, 5)) == ("reconfigure", ["gres.conf"])


def test_a_comment_alone_is_still_sent_to_the_nodes() -> None:
    assert config.decide(files(), files("# new\n" + CONF), (24, 11, 5)) == ("reconfigure", ["slurm.conf"])


def test_the_throwaway_daemon_touches_neither_state_nor_database() -> None:
    text = config.isolated(CONF, "/tmp/x")
    parsed = conf.parse_conf(text)
    assert parsed["statesavelocation"] == "/tmp/x/state"
    assert not [key for key in parsed if key.startswith("accountingstorage")]
    assert parsed["partitionname=batch"] == "Nodes=node1 Default=YES"
    assert parsed["nodename=node1"] == "CPUs=2"


@pytest.mark.parametrize(
    "line",
    [
        "SlurmctldPrimaryOnProg=/site/on",
        "SlurmctldPrimaryOffProg=/site/off",
        "PrologSlurmctld=/site/prolog",
        "EpilogSlurmctld=/site/epilog",
        "SuspendProgram=/site/suspend",
        "ResumeProgram=/site/resume",
        "ResumeFailProgram=/site/failed",
        "RebootProgram=/site/reboot",
        "HealthCheckProgram=/site/health",
        "MailProg=/site/mail",
        "UnkillableStepProgram=/site/kill",
        "JobCompType=jobcomp/script",
        "JobCompLoc=/site/completed",
        "SlurmSchedLogFile=/var/log/site",
        "JobSubmitPlugins=lua",
        "JobSubmitPlugins = job_submit/lua",
        "BurstBufferType=burst_buffer/lua",
    ],
)
def test_the_throwaway_daemon_starts_no_program_of_the_site(line: str) -> None:
    assert config.isolated(f"{line}\n{CONF}", "/tmp/x") == config.isolated(CONF, "/tmp/x")


def test_weights_of_what_only_the_database_knows_are_not_judged() -> None:
    weights = "CPU=1.0,Mem=0.25G,GRES/gpu=16,gres/gpu:a100=20,GRES/fpga=2"
    text = (
        "AccountingStorageTRES=gres/gpu,gres/gpu:a100\n"
        f"PriorityWeightTRES={weights}\n"
        f"PartitionName=a Nodes=ALL TRESBillingWeights={weights} Default=YES\n"
        "PartitionName=b TRESBillingWeights=GRES/gpu=1 Nodes=ALL\n"
    )
    parsed = conf.parse_conf(config.isolated(text, "/tmp/x"))
    kept = "CPU=1.0,Mem=0.25G,GRES/fpga=2"
    assert parsed["priorityweighttres"] == kept, "what is accounted nowhere slurmctld itself refuses"
    assert parsed["partitionname=a"] == f"Nodes=ALL TRESBillingWeights={kept} Default=YES"
    assert parsed["partitionname=b"].split() == ["Nodes=ALL"]


def test_slurms_own_plugins_are_judged() -> None:
    parsed = conf.parse_conf(config.isolated("JobSubmitPlugins=require_timelimit,lua,mine\n", "/tmp/x"))
    assert parsed["jobsubmitplugins"] == "require_timelimit,mine"


def test_a_throwaway_goes_by_munge_and_by_plugins_that_are_there() -> None:
    """auth/slurm would open the socket of the daemon that runs; a preview has brought no plugin yet."""
    text = "AuthType=auth/slurm\nCredType=cred/slurm\nAcctGatherEnergyType=acct_gather_energy/ipmi\n"
    parsed = conf.parse_conf(config.isolated(text, "/tmp/x"))
    assert not {"authtype", "credtype"} & parsed.keys()
    assert parsed["acctgatherenergytype"] == "acct_gather_energy/ipmi"
    assert "acctgatherenergytype" not in conf.parse_conf(config.isolated(text, "/tmp/x", is_preview=True))


@pytest.mark.parametrize(
    ("text", "version"), [("slurm-wlm 24.11.5", (24, 11, 5)), ("slurm 22.05.8", (22, 5, 8)), ("", ())]
)
def test_version(text: str, version: tuple[int, ...]) -> None:
    assert config.parse_version(text) == version


@pytest.mark.parametrize(
    ("oldest", "is_there"),
    [((22, 5, 8), False), ((24, 5, 1), False), ((24, 11, 0), True), ((26, 5, 5), True)],
)
def test_an_older_slurm_gets_no_line_that_it_would_refuse(oldest: tuple[int, ...], is_there: bool) -> None:  # noqa: FBT001
    given = files(**{"job_container.conf": "BasePath=/scratch\nEntireStepInNS=true\n"})
    kept = config.without_unknown(given, {"EntireStepInNS=true": "24.11"}, oldest)
    assert ("EntireStepInNS=true" in kept["job_container.conf"]) is is_there
    assert kept | {"job_container.conf": ""} == given | {"job_container.conf": ""}


@pytest.mark.parametrize(
    ("told", "oldest"),
    [
        ("24.11.5\n", (24, 11, 5)),
        ("24.11.5\n23.11.4\n", (23, 11, 4)),
        ("n/a\n(null)\n", (24, 11, 5)),
        ("", (24, 11, 5)),
    ],
)
def test_the_oldest_slurm_of_a_cluster(
    told: str, oldest: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = object.__new__(config.Slurmctld)
    monkeypatch.setattr(daemon, "_run", lambda _command: (0, told), raising=False)
    assert daemon.oldest_version((24, 11, 5)) == oldest


@pytest.mark.parametrize("oldest", [(22, 5, 8), (24, 11, 5)])
def test_what_an_older_slurm_does_not_know_waits_for_nothing(oldest: tuple[int, ...]) -> None:
    given = {"x.conf": "a\nEntireStepInNS=true\nc\n"}
    parameters = {"known_since": {"EntireStepInNS=true": "24.11"}, "not_added": {"x.conf": ["c"]}}
    wanted, kept = config.planned(given, {"x.conf": "a\n"}, parameters, oldest)
    assert [line.split("'")[1] for line in config.left_out(wanted, kept, Path("/etc"))] == ["c"]
    assert ("EntireStepInNS=true" in kept["x.conf"]) == (oldest >= (24, 11))


class RefusedError(Exception):
    """What a module says that fails."""


@pytest.mark.parametrize(
    ("before", "after", "was_on", "is_refused"),
    [
        (["db1"], ["db1"], "", False),
        (["db1"], ["db1", "db2"], "", False),
        (["db1"], ["db2"], "", True),
        (["db1"], ["db2"], "db1", False),
        (["db1", "db2"], ["db1"], "", False),
        (["db1", "db2"], ["db2"], "", False),
        (["db1", "db2"], ["db2", "db3"], "", False),
        (["db1", "db2"], ["db3", "db4"], "", True),
        (["db1", "db2"], ["db3"], "db2", False),
        ([], ["db1"], "", False),
    ],
)
def test_accounting_does_not_begin_anew_on_hosts_of_which_none_has_it(
    before: list[str], after: list[str], was_on: str, *, is_refused: bool
) -> None:
    keys = ("AccountingStorageHost", "AccountingStorageBackupHost")
    texts = [
        "".join(f"{key}={name}\n" for key, name in zip(keys, names, strict=False))
        for names in (before, after)
    ]

    def fail(msg: str) -> None:
        raise RefusedError(msg)

    module = SimpleNamespace(params={"database_was_on": was_on}, fail_json=fail)
    standing = SimpleNamespace(waits=False, runs=True, stands_by=False, catches_up=False, gone=[], others=[])
    daemon = SimpleNamespace(refuse_others=lambda *_: None)
    if is_refused:
        with pytest.raises(
            RefusedError, match=f"the accounting database is on db1, and on {after[0]} it would begin"
        ):
            config.refuse(module, daemon, standing, texts, moves=False)
    else:
        config.refuse(module, daemon, standing, texts, moves=False)
