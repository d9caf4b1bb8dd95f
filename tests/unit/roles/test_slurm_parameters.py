import pytest

from deploy.content import roles
from tests.unit.roles.loading import load_module

filters = load_module("roles/slurmctld/filter_plugins/slurm_parameters.py")

OWN = {
    "SlurmctldParameters": "enable_configless",
    "PrologFlags": "Contain",
    "LaunchParameters": "use_interactive_step",
    "GresTypes": "gpu",
    "SchedulerType": "sched/backfill",
    "MpiDefault": "",
}


def merged(**of_site: object) -> dict[str, str]:
    """What is written but for what deploy writes by itself."""
    found: dict[str, str] = filters.with_parameters_of_site(OWN, of_site)
    return {name: value for name, value in found.items() if OWN.get(name) != value}


def test_what_deploy_relies_on_is_added_to() -> None:
    assert merged(SlurmctldParameters="idle_on_node_suspend") == {
        "SlurmctldParameters": "enable_configless,idle_on_node_suspend"
    }
    assert merged(PrologFlags="X11, contain") == {"PrologFlags": "Contain,X11"}
    assert merged(LaunchParameters=["mpir_use_nodeaddr", "test_exec"], GresTypes="shard") == {
        "LaunchParameters": "use_interactive_step,mpir_use_nodeaddr,test_exec",
        "GresTypes": "gpu,shard",
    }


def test_of_a_word_with_a_value_the_sites_is_written() -> None:
    own = {"SchedulerParameters": "nohold_on_prolog_fail,bf_continue,bf_window=10080,bf_resolution=420"}
    found = filters.with_parameters_of_site(own, {"schedulerparameters": "BF_Window=2880,defer,bf_continue"})
    assert found == {
        "SchedulerParameters": "nohold_on_prolog_fail,bf_continue,BF_Window=2880,bf_resolution=420,defer"
    }


def test_of_a_license_of_both_the_sites_count_is_written() -> None:
    own = {"Licenses": "matlab:10,ansys:3"}
    found = filters.with_parameters_of_site(own, {"Licenses": "matlab=20; fluent@db:5,Matlab"})
    # To Slurm, Matlab is another one.
    assert found == {"Licenses": "matlab=20,ansys:3,fluent@db:5,Matlab"}
    tres = {"AccountingStorageTRES": "gres/gpu,gres/gpu:a100"}
    found = filters.with_parameters_of_site(tres, {"AccountingStorageTRES": "gres/gpu:h100"})
    assert found == {"AccountingStorageTRES": "gres/gpu,gres/gpu:a100,gres/gpu:h100"}


def test_other_parameters_are_replaced_whatever_their_case() -> None:
    assert merged(schedulertype="sched/builtin", MaxArraySize=20001) == {
        "SchedulerType": "sched/builtin",
        "MaxArraySize": "20001",
    }


def test_an_empty_value_removes() -> None:
    found = filters.with_parameters_of_site(OWN, {"LaunchParameters": "", "PrologFlags": None})
    assert not {"LaunchParameters", "PrologFlags", "MpiDefault"} & found.keys()


@pytest.mark.parametrize("file", ["README.md", "meta/argument_specs.yml"])
def test_documentation_names_the_lists_that_are_added_to(file: str) -> None:
    text = (roles() / "slurmctld" / file).read_text()
    said, _, _ = text.partition(
        "is\nadded to them" if file == "README.md" else "is added to what deploy writes"
    )
    said = said.lower().rpartition("what is written to")[2]
    assert {name for name in filters._SHARED if name not in said} == set()
