"""Who has the programs that run around jobs, and what Slurm and the exporter of GPUs are told of them."""

from pathlib import Path
from typing import Any

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import read_site
from tests.unit.site.sites import NODE_VARIABLES, write_site

PROLOG = "/usr/local/lib/job_programs/prolog"
EPILOG = "/usr/local/lib/job_programs/epilog"
PROGRAM = "job_programs_prolog: [{name: a, path: /a}]\n"


def wired(place: Path, limit: set[str] | None = None, **files: str) -> dict[str, Any]:
    texts = {
        f"{kind}_vars/{name}.yml": text for key, text in files.items() for kind, name in [key.split("__")]
    }
    site = read_site(write_site(place, files=texts))
    groups: dict[str, Any] = generated_inventory(site, build_plan(site, limit=limit), {})["all"]["children"]
    return groups


def told(groups: dict[str, Any]) -> tuple[str, str]:
    variables = groups["phase_controller"]["vars"]
    return variables["slurmctld_prolog"], variables["slurmctld_epilog"]


def test_a_site_that_says_nothing_has_none_of_it(tmp_path: Path) -> None:
    groups = wired(tmp_path)
    assert groups["phase_job_programs"]["hosts"] == {}
    assert told(groups) == ("", "")
    assert "gpu_exporter_job_directory" not in groups["phase_check"]["hosts"]["node1"]


def test_all_nodes_have_what_one_of_them_needs(tmp_path: Path) -> None:
    groups = wired(tmp_path, host__node1=NODE_VARIABLES + PROGRAM)
    assert list(groups["phase_job_programs"]["hosts"]) == ["node1", "node2"]
    assert told(groups) == (PROLOG, "")


def test_each_switch_tells_slurm_of_what_it_needs(tmp_path: Path) -> None:
    for switch, expected in {
        "job_programs_gpu_files: true\n": (PROLOG, EPILOG),
        "job_programs_clean_up: true\n": ("", EPILOG),
        "job_programs_check_health: true\n": ("", EPILOG),
        "job_programs_epilog: [{name: a, path: /a}]\n": ("", EPILOG),
        "job_programs_epilog: []\n": ("", ""),
    }.items():
        groups = wired(tmp_path, host__node1=NODE_VARIABLES + switch)
        assert told(groups) == expected, switch
        assert list(groups["phase_job_programs"]["hosts"]) == ["node1", "node2"]


def test_a_limited_run_does_not_bring_them_into_force(tmp_path: Path) -> None:
    both = PROGRAM + "job_programs_clean_up: true\n"
    lines = [f"Prolog={PROLOG}", f"Epilog={EPILOG}"]
    for limit, expected in ((None, []), ({"node1"}, lines)):
        host = wired(tmp_path, limit, host__node1=NODE_VARIABLES + both)["phase_check"]["hosts"]["ctl1"]
        assert host["slurmctld_programs_not_added"] == expected


def test_a_limited_run_brings_no_source_of_energy_into_force_that_a_node_may_lack(tmp_path: Path) -> None:
    text = "slurmctld_energy_sources: [rapl, gpu]\nslurmctld_gres_autodetect: nvml\n"
    line = "AcctGatherEnergyType=acct_gather_energy/rapl,acct_gather_energy/gpu"
    for limit, expected in ((None, []), ({"node1"}, [line])):
        host = wired(tmp_path, limit, group__all=text)["phase_check"]["hosts"]["ctl1"]
        assert host["slurmctld_programs_not_added"] == expected


def test_the_exporter_reads_the_files_where_they_are_kept(tmp_path: Path) -> None:
    both = "job_programs_gpu_files: true\n"
    node = wired(tmp_path, group__all=both)["phase_check"]["hosts"]["node1"]
    assert node["gpu_exporter_job_directory"] == "/run/gpu_jobs"
    node = wired(tmp_path, group__all=f"{both}gpu_exporter_job_directory: /run/of-site\n")["phase_check"]
    assert node["hosts"]["node1"]["job_programs_gpu_directory"] == "/run/of-site"
    assert "gpu_exporter_job_directory" not in node["hosts"]["node1"]


def test_who_may_log_in_without_a_job_is_not_cleaned_up(tmp_path: Path) -> None:
    text = "job_ssh_admin_users: [carol]\njob_ssh_admin_groups: [wheel]\nansible_user: root2\n"
    node = wired(tmp_path, group__all=text)["phase_check"]["hosts"]["node1"]
    assert node["job_programs_kept_users"] == ["carol", "root2"]
    assert node["job_programs_kept_groups"] == ["wheel"]
