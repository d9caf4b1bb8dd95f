"""Users have the program with the checksum, directories of their own, and the site's channels."""

import json

from molecule.conftest import Converge, On

_READ = "import json, yaml; print(json.dumps(yaml.safe_load(open('/etc/conda/.condarc'))))"


def test_environments_are_in_a_users_own_directory(on: On, machine: str) -> None:
    said = on(machine, "su", "--login", "alice", "--command", "micromamba create --name x").stdout
    assert said == "/scratch/alice/conda create --name x\n"
    own = "MAMBA_ROOT_PREFIX=/work/x micromamba list"
    assert on(machine, "su", "--login", "alice", "--command", own).stdout == "/work/x list\n"


def test_the_channels_are_the_sites_and_no_others(on: On, machine: str) -> None:
    assert json.loads(on(machine, "python3", "-c", _READ).stdout) == {
        "channels": ["https://mirror.site.example/conda/conda-forge", "site"],
        "channel_alias": "https://mirror.site.example/conda",
        "channel_priority": "strict",
        "default_channels": [],
    }


def test_a_program_with_another_checksum_is_refused(on: On, converge: Converge, machine: str) -> None:
    answer = converge(only=machine, checksum="0" * 64)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert f"did not match {'0' * 64}" in answer.stdout + answer.stderr
    assert (
        on(machine, "su", "--login", "alice", "--command", "micromamba").stdout == "/scratch/alice/conda \n"
    )


def test_a_version_without_a_file_is_refused(converge: Converge, machine: str) -> None:
    answer = converge(only=machine, version="3.0")
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "conda_files has 0 files of micromamba 3.0 for amd64" in answer.stdout + answer.stderr
