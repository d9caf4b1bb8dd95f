"""The phases as a graph: what each needs comes before it, and is found through others."""

from pathlib import Path

from deploy.plan.build import build_plan
from deploy.plan.catalog import PHASES, prerequisites
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

_PLACES = {phase.name: place for place, phase in enumerate(PHASES)}


def test_what_a_phase_needs_comes_before_it() -> None:
    for phase in PHASES:
        needed = {*phase.after, *phase.after_everywhere}
        assert needed <= _PLACES.keys(), phase.name
        assert all(_PLACES[name] < _PLACES[phase.name] for name in needed), phase.name


def test_prerequisites_reach_through_others() -> None:
    assert prerequisites("compute")[:2] == ("proxy", "base")
    assert {"database", "accounting", "controller", "scratch"} <= {*prerequisites("compute")}


def test_hosts_let_a_new_one_in_before_anything_is_asked_of_them() -> None:
    """It mounts from them, joins their database, registers with them."""
    before = {"proxy", "package_cache", "base"}
    assert {name for name, place in _PLACES.items() if place < _PLACES["firewall"]} == before


def test_logs_and_monitoring_are_in_nobodys_way() -> None:
    aside = {"log_server", "log_client", "monitoring", "grafana", "node_exporter", "probes", "quotas", "rdma"}
    for phase in PHASES:
        assert phase.name in aside | {"targets"} or not aside & {*prerequisites(phase.name)}, phase.name


def test_a_controller_that_has_work_takes_the_others_along(tmp_path: Path) -> None:
    """One that stands by takes the configuration of the one that leads; alone it would wait in vain."""
    text = INVENTORY.replace("[slurm-master]\nctl1", "[slurm-master]\nctl1\nlogin1")
    site = read_site(write_site(tmp_path, text))
    everything = {host.name: frozenset(_PLACES) for host in site.hosts.values()}
    assert build_plan(site, converged=everything).steps == ()
    everything["login1"] -= {"base", "controller"}
    steps = build_plan(site, converged=everything).steps
    assert [(step.phase.name, step.hosts) for step in steps] == [
        ("base", ("login1",)),
        ("controller", ("ctl1", "login1")),
    ]


def test_a_part_of_a_plan(tmp_path: Path) -> None:
    plan = build_plan(read_site(write_site(tmp_path)))
    part = plan.only({"base": ("node1",), "ssh_server": ("ctl1", "node1")})
    assert [(step.phase.name, step.hosts) for step in part.steps] == [
        ("base", ("node1",)),
        ("ssh_server", ("ctl1", "node1")),
    ]
