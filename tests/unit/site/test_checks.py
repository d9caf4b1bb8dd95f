"""Bad sites, each with its exact findings."""

from pathlib import Path

import pytest

from deploy.errors import DeployError, ExitCode
from deploy.site.checks import check_site
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

ALL = "group_vars/all.yml"


def findings(tmp_path: Path, inventory: str, files: dict[str, str]) -> dict[str, str]:
    """Reference -> where + message + hint of every finding."""
    site = read_site(write_site(tmp_path, inventory, files))
    with pytest.raises(DeployError) as problem:
        check_site(site)
    assert problem.value.exit_code == ExitCode.BAD_INPUT
    return {finding.reference: str(finding) for finding in problem.value.findings}


def test_a_healthy_site_has_no_finding(tmp_path: Path) -> None:
    files = {ALL: "site_own: 1\nusers_create_home: false\n"}
    check_site(read_site(write_site(tmp_path, files=files)))


@pytest.mark.parametrize(
    ("change", "files", "reference", "words"),
    [
        (("[slurm-master]\n", "[slurm-master]\n[slurm-metric]\n"), {}, "no-slurm-master", "[slurm-master]"),
        (
            ("[slurm-master]\nctl1\n", "[slurm-master]\nctl1\nlogin1\n"),
            {},
            "several-slurm-masters",
            "2 hosts",
        ),
        (("node[1:2]\n", "[slurm-metric]\nnode[1:2]\n"), {}, "no-slurm-node", "[slurm-node]"),
        (("[slurm-master]", "stray\n[slurm-master]"), {}, "host-in-no-group", "inventory.ini:7"),
        (("10.0.0.12", "10.0.0.11"), {}, "duplicate-address", "node1 and node2"),
        (("login1", "log.in1"), {}, "invalid-host-name", "log.in1"),
        (("", ""), {ALL: "users_create_hom: true\n"}, "unknown-variable", "did you mean 'users_create_home'"),
        (("", ""), {ALL: "\nslurm_version: 1\n"}, "deepops-renamed", "all.yml:2"),
        (("", ""), {ALL: "slurmctld_slurmd_timeout: soon\n"}, "invalid-value", "slurmctld_slurmd_timeout"),
        (("", ""), {ALL: "slurmctld_return_to_service: 7\n"}, "invalid-value", "one of"),
        (("", ""), {ALL: "slurmctld_partitions: [{nam: x}]\n"}, "invalid-value", "did you mean 'name'"),
        (("", ""), {ALL: "slurmctld_partitions: [{default: true}]\n"}, "invalid-value", "name"),
        (
            ("", ""),
            {ALL: "slurmctld_partitions: [{name: a, default: true}, {name: b, default: true}]\n"},
            "several-default-partitions",
            "a, b",
        ),
        (
            ("", ""),
            {ALL: "slurmctld_partitions: [{name: a}, {name: a}]\n"},
            "duplicate-partition",
            "twice",
        ),
        (
            ("", ""),
            {ALL: "slurmctld_partitions: [{name: a, nodes: ['node[1-3]']}]\n"},
            "partition-unknown-node",
            "node3",
        ),
        (
            ("", ""),
            {ALL: "slurmctld_partitions: [{name: a, groups: [gpu]}]\n"},
            "partition-without-nodes",
            "'gpu'",
        ),
        (
            ("", ""),
            {"group_vars/slurm-node.yml": "slurmd_hardware: {gpus: [{type: '', count: 1}]}\n"},
            "gpu-without-type",
            "node2",
        ),
        (("", ""), {ALL: "munge_key: changeme\n"}, "placeholder-secret", "munge_key"),
        (
            ("", ""),
            {"secrets.yml": "slurmdbd_database_password: ReplaceWithASecurePasswordInTheVault\n"},
            "placeholder-secret",
            "secrets.yml",
        ),
        (("", ""), {ALL: "munge_key: k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y\n"}, "unfit-secret", "munge refuses"),
        (("", ""), {"secrets.yml": "munge_key: 1234567890123456789\n"}, "unfit-secret", "32 characters"),
        (
            ("", ""),
            {ALL: "slurmdbd_database_password: 'k3Y_ k3Y_k3Y_k3Y_k3Y'\n"},
            "unfit-secret",
            "slurmdbd.conf",
        ),
        (
            ("", ""),
            {"secrets.yml": "slurmdbd_database_password: 'k3Y_k3Y_k3Y_k3Y_#k3Y'\n"},
            "unfit-secret",
            "hash sign",
        ),
    ],
)
def test_bad_sites(
    tmp_path: Path, change: tuple[str, str], files: dict[str, str], reference: str, words: str
) -> None:
    found = findings(tmp_path, INVENTORY.replace(*change) if change[0] else INVENTORY, files)
    assert list(found) == [reference]
    assert words in found[reference]
    assert "->" in found[reference]


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    found = findings(
        tmp_path, INVENTORY.replace("10.0.0.12", "10.0.0.11"), {ALL: "nonsense: 1\nmunge_key: x\n"}
    )
    assert sorted(found) == ["duplicate-address", "placeholder-secret", "unknown-variable"]


def test_secrets_that_others_can_read(tmp_path: Path) -> None:
    path = write_site(tmp_path, files={"secrets.yml": "munge_key: " + "k3Y_" * 12 + "\n"})
    (tmp_path / "secrets.yml").chmod(0o644)
    with pytest.raises(DeployError) as problem:
        check_site(read_site(path))
    assert [finding.reference for finding in problem.value.findings] == ["secrets-readable"]
    assert "k3Y" not in str(problem.value)


def test_a_wrong_secret_is_not_shown(tmp_path: Path) -> None:
    found = findings(tmp_path, INVENTORY, {ALL: "munge_key: {inner: 5ecr3t}\n"})
    assert list(found) == ["invalid-value"]
    assert "5ecr3t" not in found["invalid-value"]
