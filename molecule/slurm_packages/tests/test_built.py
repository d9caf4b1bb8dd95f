"""SchedMD's own packaging: built once, where nothing is left behind, from what has the checksum."""

import os
from pathlib import Path

import pytest

from molecule.conftest import Converge, On

BUILT = "built"
DAEMONS = ("slurmctld", "slurmdbd", "slurmd", "sackd")
PLACE = "/var/lib/deploy/slurm-packages"


def archives(on: On) -> list[str]:
    return on(BUILT, "find", PLACE, "-name", "*.tar", "-printf", "%f %T@\n").stdout.splitlines()


@pytest.mark.parametrize("daemon", DAEMONS)
def test_every_component_is_there_and_none_was_started(on: On, daemon: str) -> None:
    shape = "--showformat=${db:Status-Abbrev}${Version}"
    assert on(BUILT, "dpkg-query", "--show", shape, f"slurm-smd-{daemon}").stdout == "ii 24.11.9-1"
    assert on(BUILT, "systemctl", "is-active", daemon, check=False).stdout == "inactive\n"


def test_a_user_without_rights_built_it_and_without_a_network(on: On) -> None:
    assert on(BUILT, "slurmd", "-V").stdout == "slurm 24.11.9 built by 65533, network: lo\n"


def test_no_compiler_and_no_trace_of_the_build_is_left(on: On) -> None:
    installed = on(BUILT, "dpkg-query", "--show", "--showformat=${Package}\n").stdout.split()
    assert not {"gcc", "make", "dpkg-dev", "hello"} & set(installed)
    assert on(BUILT, "find", PLACE, "-name", "build-*").stdout == ""
    assert not [name for name in installed if name.startswith("slurm-smd-doc")]


def test_what_the_packages_do_not_make(on: On) -> None:
    assert on(BUILT, "getent", "passwd", "slurm").stdout.startswith("slurm:x:64030:64030:")
    assert on(BUILT, "stat", "--format=%U %a", "/var/log/slurm").stdout == "slurm 755\n"
    assert "/var/log/slurm/slurmd.log" in on(BUILT, "cat", "/etc/logrotate.d/deploy-slurm").stdout


def test_another_release_than_the_tarball_has_is_not_built(on: On, converge: Converge) -> None:
    for name in archives(on):
        on(BUILT, "mv", f"{PLACE}/{name.split()[0]}", "/root/")
    kept = next(Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"], "packages").glob("*.tar"))
    away = kept.rename(kept.with_suffix(".away"))
    said = converge(only=BUILT, release="26.05")
    away.rename(kept)
    assert "it holds Slurm 24.11.9-1, and slurm_packages_version is 26.05" in said.stdout + said.stderr


def test_another_file_than_the_checksum_says_is_refused(on: On, converge: Converge) -> None:
    before = archives(on)
    said = converge(only=BUILT, checksum="0" * 64)
    assert said.returncode != 0
    assert "checksum" in said.stdout + said.stderr
    assert archives(on) == before


def test_what_the_site_has_kept_is_not_built_again(on: On, converge: Converge) -> None:
    on(BUILT, "find", PLACE, "-delete")
    said = converge(only=BUILT)
    assert said.returncode == 0
    # The time of the archive is that of its copy: nothing was fetched to build it from.
    assert len(archives(on)) == 1
    assert on(BUILT, "find", PLACE, "-name", "*.tarball").stdout == ""
