from collections.abc import Collection
from dataclasses import replace

import pytest

from deploy.errors import ExitCode
from deploy.judge.convergence import Convergence
from deploy.judge.departed import Departed
from deploy.judge.drift import HostState, PhaseState
from deploy.judge.leading import LEADS, SILENT, Leading
from deploy.judge.site_status import SiteStatus, site_status
from deploy.run.events import HostResult
from deploy.show.status import lines, verdict
from deploy.site.inventory import Site, read_site
from tests.unit.judge.statuses import NOW, answered, lost, slurm_node
from tests.unit.site.sites import INVENTORY, write_site

HOSTS = ("ctl1", "login1", "node1", "node2")
HEALTHY = {"node1": slurm_node(), "node2": slurm_node("MIXED")}
DRAINED = {"node1": slurm_node("IDLE+DRAIN", "disk", "root", 60.0), "node2": slurm_node()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return read_site(write_site(tmp_path_factory.mktemp("site")))


def _judged(
    site: Site,
    *results: HostResult,
    nodes: dict[str, dict[str, object]] | None = None,
    limit: Collection[str] | None = None,
    asked: tuple[str, ...] = HOSTS,
    away: tuple[str, ...] = (),
) -> SiteStatus:
    found = {host: answered(host) for host in asked}
    found["ctl1"] = answered("ctl1", slurm={"nodes": HEALTHY if nodes is None else nodes})
    found |= {result.host: result for result in results}
    found = {name: result for name, result in found.items() if name not in away}
    ends = dict.fromkeys(HOSTS, Convergence(NOW - 60, "1.0", "run"))
    return site_status(
        site, found, ends, {}, asked=asked, away=away, limit=limit, inventory="inv.ini", at=NOW
    )


def _names(status: SiteStatus) -> list[str]:
    return [host.status.name for host in status.hosts]


def test_all_is_well(site: Site) -> None:
    status = _judged(site)
    assert _names(status) == list(HOSTS)
    assert status.exit_code == ExitCode.OK
    assert [host.status.slurm.word for host in status.hosts if host.status.slurm] == ["idle", "mixed"]


def test_the_most_important_comes_first(site: Site) -> None:
    down = {"name": "slurmdbd", "load": "loaded", "active": "failed", "result": "", "seconds": 1.0}
    status = _judged(
        site,
        answered("ctl1", services=[down], slurm={"nodes": DRAINED}),
        answered("login1", failed_units=["odd.service"]),
        lost("node2"),
    )
    assert _names(status) == ["ctl1", "node2", "node1", "login1"]
    assert [host.status.name for host in status.bad] == ["ctl1", "node1"]
    assert status.exit_code == ExitCode.FAILED


def test_only_an_unreachable_host_has_its_own_exit_code(site: Site) -> None:
    nodes = {"node1": slurm_node(), "node2": slurm_node("DOWN+DRAIN", "fan", "root", 60.0)}
    assert _judged(site, lost("node2"), nodes=nodes).exit_code == ExitCode.UNREACHABLE
    assert _judged(site, lost("node2"), nodes=DRAINED).exit_code == ExitCode.FAILED


def test_nodes_that_only_one_side_knows(site: Site) -> None:
    status = _judged(site, nodes={"node1": slurm_node(), "old9": slurm_node("DOWN")})
    assert {host.status.name: host.findings[0].reference for host in status.bad} == {
        "node2": "node-not-in-slurm",
        "old9": "node-not-in-inventory",
    }
    assert status.exit_code == ExitCode.FAILED


def test_a_limit_shows_its_hosts_and_a_controller_in_trouble(site: Site) -> None:
    limited = {"limit": {"node1"}, "asked": ("ctl1", "node1")}
    status = _judged(site, nodes={**HEALTHY, "old9": slurm_node()}, **limited)  # type: ignore[arg-type]
    assert _names(status) == ["node1"]
    status = _judged(site, lost("ctl1"), **limited)  # type: ignore[arg-type]
    assert _names(status) == ["ctl1", "node1"]
    assert status.hosts[1].findings == ()
    assert status.exit_code == ExitCode.UNREACHABLE


def test_hosts_that_left_the_inventory_are_shown_until_they_are_gone(site: Site) -> None:
    found = {host: answered(host) for host in HOSTS}
    found["ctl1"] = answered("ctl1", slurm={"nodes": {**HEALTHY, "old9": slurm_node()}})
    ends = dict.fromkeys(HOSTS, Convergence(NOW - 60, "1.0", "run"))
    departed = [Departed("old8"), Departed("old9", ("running munge",)), Departed("login9", why="lost")]
    status = site_status(
        site, found, ends, {}, departed, asked=HOSTS, limit=None, inventory="inv.ini", at=NOW
    )
    assert {host.status.name: [f.reference for f in host.findings] for host in status.bad} == {
        "old9": ["node-not-in-inventory", "host-departed"],
        "login9": ["host-departed"],
    }
    assert status.exit_code == ExitCode.FAILED


STOPPED = {"name": "slurmctld", "load": "loaded", "active": "inactive", "result": "success", "seconds": 60.0}


def _of_two(tmp_path_factory: pytest.TempPathFactory, *results: HostResult, leading: Leading) -> SiteStatus:
    text = INVENTORY.replace("[slurm-master]\nctl1", "[slurm-master]\nctl1\nlogin1")
    site = read_site(write_site(tmp_path_factory.mktemp("site"), text))
    found = {host: answered(host) for host in HOSTS}
    found["login1"] = answered("login1", slurm={"nodes": HEALTHY})
    found |= {result.host: result for result in results}
    ends = dict.fromkeys(HOSTS, Convergence(NOW - 60, "1.0", "run"))
    return site_status(
        site, found, ends, {}, leading=leading, asked=HOSTS, limit=None, inventory="inv.ini", at=NOW
    )


def test_a_controller_that_another_one_cannot_reach_is_named_unless_that_is_said_already(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    why = {"ctl1": {"login1": "connect failure"}, "login1": {}}
    leading = Leading({"ctl1": SILENT, "login1": LEADS}, 900.0, why)
    (bad,) = _of_two(tmp_path_factory, leading=leading).bad
    assert bad.status.name == "ctl1"
    assert [finding.reference for finding in bad.findings] == ["standby-silent"]
    for result in (answered("ctl1", services=[STOPPED]), lost("ctl1")):
        status = _of_two(tmp_path_factory, result, leading=leading)
        (judged,) = [host for host in status.hosts if host.status.name == "ctl1"]
        assert "standby-silent" not in [finding.reference for finding in judged.findings]


def test_a_first_controller_that_was_stopped_leads_again_by_failback(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    stopped = answered("ctl1", services=[STOPPED])
    moved = Leading({"ctl1": SILENT, "login1": LEADS}, 900.0, {"ctl1": {"login1": "x"}, "login1": {}})
    (finding,) = _of_two(tmp_path_factory, stopped, leading=moved).bad[0].findings
    assert finding.reference == "service-down"
    assert finding.hint.startswith("deploy failback inv.ini")
    nobody = Leading({"ctl1": SILENT, "login1": SILENT}, None, {"ctl1": {}, "login1": {}})
    (finding,) = _of_two(tmp_path_factory, stopped, leading=nobody).bad[0].findings
    assert finding.hint.startswith("deploy cluster inv.ini --limit ctl1")


def test_a_node_that_slurm_has_switched_off_is_well(site: Site) -> None:
    nodes = {"node1": slurm_node("IDLE+CLOUD+POWERED_DOWN"), "node2": slurm_node()}
    status = _judged(site, nodes=nodes, away=("node1",))
    assert status.exit_code == ExitCode.OK
    assert "node1 powered down  idle+cloud+powered_down" in "\n".join(lines(status))
    assert verdict(status) == "4 hosts: 4 well"


def test_one_that_did_not_come_is_down(site: Site) -> None:
    nodes = {
        "node1": slurm_node("DOWN+CLOUD+POWERED_DOWN", "ResumeTimeout reached", "slurm", 60.0),
        "node2": slurm_node("ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP"),
    }
    status = _judged(site, nodes=nodes, away=("node1", "node2"))
    ((bad, (finding,)),) = [(host.status.name, host.findings) for host in status.bad]
    assert (bad, finding.reference) == ("node1", "node-down")
    assert "ResumeTimeout reached" in finding.message


def test_without_a_journal_the_hosts_own_records_say_when_they_converged(site: Site) -> None:
    whole = HostState((PhaseState("base", is_current=True, drift=()),), at=NOW - 60, version="1.0")
    records = {
        "node1": whole,
        "node2": replace(whole, unrecorded=("scratch",)),
        "login1": HostState(why="no"),
    }
    found = {host: answered(host) for host in HOSTS}
    status = site_status(site, found, {}, records, asked=HOSTS, limit=None, inventory="inv.ini", at=NOW)
    ends = {host.status.name: host.status.convergence for host in status.hosts}
    assert ends == {"node1": Convergence(NOW - 60, "1.0", ""), "node2": None, "login1": None, "ctl1": None}
