"""A file without an architecture is amd64's, as the roles' variables say."""

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.contract.content import ROOT, read_yaml


@pytest.mark.parametrize(
    ("role", "files", "listed"),
    [
        ("enroot", "__enroot_files", {"enroot_package_files": {}}),
        (
            "apptainer",
            "__apptainer_files",
            {"apptainer_package_files": {"version": "1", "systems": ["Debian-12"]}, "apptainer_version": "1"},
        ),
        ("conda", "__conda_of_host", {"conda_files": {"version": "1"}, "conda_version": "1"}),
    ],
)
@pytest.mark.parametrize(("machine", "expected"), [("x86_64", ["plain", "amd64"]), ("aarch64", ["arm64"])])
def test_a_host_gets_files_of_its_architecture(
    role: str, files: str, listed: dict[str, object], machine: str, expected: list[str]
) -> None:
    texts = read_yaml(ROOT / "roles" / role / "vars/main.yml")
    variables = {
        key: trust_as_template(value) if isinstance(value, str) else value for key, value in texts.items()
    }
    for name, value in listed.items():
        variables[name] = (
            [
                {"url": "plain", **value},
                {"url": "amd64", "architecture": "amd64", **value},
                {"url": "arm64", "architecture": "arm64", **value},
            ]
            if isinstance(value, dict)
            else value
        )
    variables["ansible_facts"] = {
        "architecture": machine,
        "distribution": "Debian",
        "distribution_major_version": "12",
    }
    found = Templar(loader=DataLoader(), variables=variables).template(variables[files])
    assert [each["url"] for each in found] == expected
