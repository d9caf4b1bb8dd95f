"""The accounting database holds what is declared, whatever it held before."""

import json

from molecule.conftest import On


def show(on: On, machine: str, entity: str, columns: str, *words: str) -> set[str]:
    return set(
        on(machine, "sacctmgr", "-nP", "show", entity, *words, f"format={columns}").stdout.splitlines()
    )


def test_what_was_declared_is_remembered_in_the_database(on: On, machine: str) -> None:
    kept = on(machine, "mariadb", "-rNe", "SELECT content FROM slurm_acct_db.deploy_given").stdout
    assert "physics" in json.loads(kept)["accounts"]
    on(machine, "test", "!", "-e", "/var/lib/deploy/given/slurm_accounts.json")


def test_cluster(on: On, machine: str) -> None:
    assert show(on, machine, "cluster", "Cluster") == {"lab"}


def test_qos(on: On, machine: str) -> None:
    columns = "Name,Priority,Flags,GraceTime,MaxWall,MaxTRESPU,MaxSubmitJobsPU,GrpTRES,UsageFactor,Descr"
    normal = "normal|0||00:00:00|||||1.000000|Normal QOS default"
    budget = "1|NoDecay|00:00:00|||||1.000000"
    assert show(on, machine, "qos", columns) - {normal} == {
        "high|100|DenyOnLimit,NoDecay|00:01:00|1-00:00:00|cpu=4,mem=1.50G|10|mem=8000M|2.000000|first",
        "scavenger|0||00:00:00|||||1.000000|scavenger",
        f"ice|{budget}|budget: cpu=100 hours a quarter, then go on in scavenger",
        f"snow|{budget}|budget: cpu=2 hours a month, then stop",
    }


def test_preemption(on: On, machine: str) -> None:
    assert show(on, machine, "qos", "Name,Preempt,PreemptMode,PreemptExemptTime") == {
        "normal||cluster|",
        "scavenger||requeue|",
        "ice||cluster|",
        "snow||cluster|",
        "high|normal,scavenger|cluster|01:30:00",
    }


def test_accounts(on: On, machine: str) -> None:
    assert show(on, machine, "account", "Account,Organization,Descr") == {
        "root|root|default root account",
        "physics|science|physics, all of it",
        "laser|physics|laser" if machine == "trixie" else "laser|laser|laser",
        "ice|ice|ice",
        "snow|snow|snow",
    }


def test_tree_and_limits(on: On, machine: str) -> None:
    limits = "Fairshare,GrpTRES,GrpWall,GrpSubmitJobs,MaxJobs,MaxWall,MaxTRES,QOS,DefaultQOS"
    columns = f"Account,User,ParentName,{limits}"
    assert show(on, machine, "assoc", columns, "wopl") - {"root|root||1||||||||"} == {
        "root|||1|||5000||||normal|",
        "physics||root|1|cpu=64,mem=1T|30-00:00:00||||||",
        "laser||physics|10|cpu=32||||||high,normal|high",
        "laser|alice||parent||||||||",
        "physics|alice||parent||||||||",
        "laser|bob||1|||||01:30:00|||",
        "physics|bob||1||||||cpu=2||",
        "ice||root|1|||||||ice,scavenger|ice",
        "ice|alice||1||||||||",
        "ice|dora||1||||||||",
        "snow||root|1|||||||snow|snow",
    }


def test_users(on: On, machine: str) -> None:
    assert show(on, machine, "user", "User,AdminLevel,DefaultAccount") == {
        "root|Administrator|root",
        "alice|Operator|laser",
        "bob|None|laser",
        "dora|None|ice",
    }


def test_projects(on: On, machine: str) -> None:
    assert show(on, machine, "account", "Account,Coordinators", "withcoord") >= {
        "ice|alice",
        "laser|",
        "snow|",
    }
    assert show(on, machine, "qos", "Name,GrpTRESMins") >= {"ice|", "snow|cpu=120"}
