"""The script of the floor: accounts before packages, packages before files, and no secret in a command."""

import pytest

from tests.bench.commands import BenchError
from tests.bench.floor import database_statements, install_script
from tests.bench.state import Installed

INSTALLED = Installed(
    packages=("munge", "slurmd"),
    groups=("slurm 64030", "alice 2001"),
    users=(
        "slurm:x:64030:64030::/nonexistent:/usr/sbin/nologin",
        "alice:x:2001:2001::/home/alice:/bin/bash",
    ),
    services=("munge.service", "slurmd.service"),
    files=b"",
)


def test_everything_in_its_order() -> None:
    script = install_script(INSTALLED, makes_homes=False)
    marks = (
        "groupadd --gid 64030",
        "useradd --uid 64030",
        "install munge slurmd",
        "tar --extract",
        "munge\n",
    )
    places = [script.rindex(mark) for mark in marks]
    assert places == sorted(places)
    assert script.rstrip().endswith("systemctl enable --quiet --now munge")


def test_homes_are_made_once_for_the_shared_volume() -> None:
    assert "--create-home alice" in install_script(INSTALLED, makes_homes=True)
    assert "--create-home" not in install_script(INSTALLED, makes_homes=False).replace("--no-create-home", "")
    assert "--no-create-home slurm" in install_script(INSTALLED, makes_homes=True)


def test_the_database_is_that_of_slurmdbd() -> None:
    statements = database_statements("StorageLoc=acct\nStorageUser=slurm\nStoragePass=secret\n")
    assert "CREATE DATABASE `acct`" in statements
    assert "'slurm'@'localhost' IDENTIFIED BY 'secret'" in statements
    with pytest.raises(BenchError, match="StorageLoc"):
        database_statements("ClusterName=cluster\n")
