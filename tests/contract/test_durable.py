"""What takes another file's place is on disk before, everywhere."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.contract.content import ROOT

_SEE_TO_IT = {
    "deploy/durable.py",
    "deploy/run/drains.py",
    "deploy/run/host_records.py",
    "playbooks/library/slurm_backup.py",
    "playbooks/module_utils/durable.py",
    "roles/slurm_packages/library/slurm_build.py",
    # Whose own tests see to it: it opens nothing by its path.
    "playbooks/module_utils/user_files.py",
}
_NOTHING_LOST = {
    "deploy/bundle/files.py": "a download, compared with its checksum whenever it is used",
    "deploy/site/creation.py": "the directory of a new site: its files are on disk",
    "playbooks/library/python_environment.py": "a link; what it leads to is on disk",
    "playbooks/library/unpacked_release.py": "a link; what it leads to is on disk",
    "deploy/validate/programs/load.py": "the answer of a job, which is read once",
    "roles/pyxis/library/spank_package.py": "a package, which dpkg judges",
    "roles/users/library/accounts.py": "sets a user's own file aside; gives a new home its name",
}


def _places() -> Iterator[Path]:
    for pattern in ("deploy/**", "playbooks/**", "roles/*/library", "roles/*/module_utils"):
        yield from ROOT.glob(f"{pattern}/*.py")


def _renames(path: Path) -> bool:
    """Whether it gives a file another's name: Path.replace has one argument, where that of a text has two."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        of_os = isinstance(node.func.value, ast.Name) and node.func.value.id == "os"
        if node.func.attr == "rename" or (node.func.attr == "replace" and (of_os or len(node.args) == 1)):
            return True
    return False


def test_what_takes_a_files_place_is_on_disk_before() -> None:
    """Otherwise a power cut leaves the new name with nothing in it."""
    found = {str(path.relative_to(ROOT)) for path in _places() if _renames(path)}
    assert found - _SEE_TO_IT - set(_NOTHING_LOST) == set()
    assert (_SEE_TO_IT | set(_NOTHING_LOST)) - found == set()
