"""The hosts that --limit names: all that is typed counts, above all what is to be left out."""

from pathlib import Path

import pytest

from deploy.engine.options import Options
from deploy.engine.run import _limited, opened
from deploy.errors import DeployError, ExitCode
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import write_site

_NODES = [f"gpu{number}" for number in range(1, 13)]
_INVENTORY = "[slurm-master]\nctl1\n[slurm-node]\ngpu[1:12]\n[rack1]\ngpu1\ngpu12\n[others]\nmail\n[none]\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return read_site(write_site(tmp_path_factory.mktemp("site"), _INVENTORY))


def _but(*names: str) -> set[str]:
    return {"ctl1", *_NODES} - {*names}


@pytest.mark.usefixtures("quick_reading")
@pytest.mark.parametrize(
    ("limit", "hosts"),
    [
        ("all:!gpu[10-12]", _but("gpu10", "gpu11", "gpu12")),
        ("all,!gpu[10-12]", _but("gpu10", "gpu11", "gpu12")),
        ("slurm-node:!gpu[10-12]", _but("ctl1", "gpu10", "gpu11", "gpu12")),
        ("slurm-node:&rack1", {"gpu1", "gpu12"}),
        ("rack1:&gpu[2-12]", {"gpu12"}),
        ("slurm-node[0:1]", {"gpu1", "gpu2"}),
        ("slurm-node:!none", _but("ctl1")),
        ("~gpu1[12]", {"gpu11", "gpu12"}),
        ("ctl1,mail", {"ctl1"}),
        ("@FILE", {"gpu1", "gpu12"}),
        ("@FILE,!gpu1", {"gpu12"}),
    ],
)
def test_the_hosts_are_those_that_were_meant(site: Site, tmp_path: Path, limit: str, hosts: set[str]) -> None:
    (tmp_path / "retry").write_text("gpu1\ngpu12\n")
    typed = limit.replace("FILE", str(tmp_path / "retry"))
    assert {*(_limited(site, Options(limit=typed)) or ())} == hosts


@pytest.mark.usefixtures("quick_reading")
@pytest.mark.parametrize(
    ("limit", "named"),
    [
        ("gpu1,gpu99", "gpu99"),
        ("all,!gpu99", "gpu99"),
        ("slurm-node:!no_such", "no_such"),
        ("all:!gpu[10-13]", r"gpu\[10-13\]"),
        ("localhost", "no host of the cluster"),
        ("mail", "no host of the cluster"),
        ("gpu1,!gpu1", "no host"),
        ("@/nowhere/retry", "No such file"),
        ("@EMPTY", "the file is empty"),
        ("@EMPTY,!gpu1", "the file is empty"),
        (",", "names no host"),
        (" ", "names no host"),
    ],
)
def test_what_nobody_is_called_ends_the_run(site: Site, tmp_path: Path, limit: str, named: str) -> None:
    (tmp_path / "failed").write_text("\n")
    with pytest.raises(DeployError, match=named) as refused:
        _limited(site, Options(limit=limit.replace("EMPTY", str(tmp_path / "failed"))))
    assert refused.value.findings[0].reference == "limit-matches-nothing"


def test_a_tag_that_no_task_has_ends_the_run(tmp_path: Path) -> None:
    """Nothing would be run, and the cluster be called converged."""
    options = Options(tags="slrumctld")
    site = opened(write_site(tmp_path), options, needs_ansible=False)
    with pytest.raises(DeployError, match="no task has the tag slrumctld") as refused, site:
        pytest.fail("not refused")
    assert refused.value.exit_code is ExitCode.BAD_INPUT
