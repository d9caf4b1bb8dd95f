"""What a cluster's Slurm does not know is refused; Molecule's slurmctld has the releases themselves."""

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/slurmctld/library/slurm_needs.py")
NEED = {"since": "24.11", "hosts": "nodes", "setting": "x: y", "older": "it falls", "instead": "leave it"}


@pytest.mark.parametrize(
    ("own", "of_nodes", "hosts", "shown"),
    [
        ((22, 5, 8), (22, 5, 8), "nodes", "22.05.8"),
        ((24, 11, 5), (23, 11, 4), "nodes", "23.11.4"),
        ((24, 11, 5), (23, 11, 4), "all", "23.11.4"),
        ((24, 11, 5), (23, 11, 4), "controllers", ""),
        ((23, 11, 4), (23, 11, 4), "controllers", "23.11.4"),
        ((24, 11, 0), (24, 11, 0), "nodes", ""),
        ((26, 5, 5), (26, 5, 5), "all", ""),
    ],
)
def test_the_release_that_counts(
    own: tuple[int, ...], of_nodes: tuple[int, ...], hosts: str, shown: str
) -> None:
    said = module.refusals([{**NEED, "hosts": hosts}], own, of_nodes)
    wanted = f"x: y takes Slurm 24.11 or later, and here is {shown}: it falls. Leave it"
    assert said == ([wanted] if shown else [])
