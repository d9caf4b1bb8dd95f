"""Module files say where software is, and no text of a site's becomes a command."""

from pathlib import Path
from typing import Any

from tests.unit.roles.loading import load_module

module = load_module("roles/environment_modules/library/module_files.py")
MPI: dict[str, Any] = {"name": "openmpi", "version": "5.0.8-cuda", "prefix": "/software/openmpi"}


def test_a_module_file_names_paths_requirements_and_variables() -> None:
    one = {**MPI, "requires": ["ucx/1.19-cuda"], "variables": {"UCX_TLS": "rc,cuda [exit]"}}
    files = module.wanted([one], Path("/m"))
    assert [*files] == [Path("/m/openmpi/5.0.8-cuda")]
    lines = files[Path("/m/openmpi/5.0.8-cuda")].splitlines()
    assert lines[0] == "#%Module1.0"
    assert "if { ![is-loaded ucx/1.19-cuda] } { module load ucx/1.19-cuda }" in lines
    assert "prepend-path PATH {/software/openmpi/bin}" in lines
    assert lines[-1] == "setenv UCX_TLS {rc,cuda [exit]}"


def test_the_default_is_said_beside_its_versions() -> None:
    files = module.wanted([MPI, {**MPI, "version": "6", "default": True}], Path("/m"))
    assert 'set ModulesVersion "6"' in files[Path("/m/openmpi/.version")]


def test_what_is_declared_no_more_goes_and_what_others_wrote_stays(tmp_path: Path) -> None:
    for path, text in module.wanted([{**MPI, "default": True}], tmp_path).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "openmpi" / "4").write_text("#%Module1.0\n")
    assert module.leftover({}, tmp_path) == [tmp_path / "openmpi/.version", tmp_path / "openmpi/5.0.8-cuda"]
