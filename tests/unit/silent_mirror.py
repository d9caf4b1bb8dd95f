"""An apt of its own with one source, which nobody serves."""

import shutil
from pathlib import Path

import pytest

needs_apt = pytest.mark.skipif(shutil.which("apt-get") is None, reason="Debian's and Ubuntu's own")
_SETTINGS = """\
Dir "{root}";
Dir::State::status "{root}/status";
APT::Sandbox::User "root";
Acquire::Retries "0";
"""


def silent_mirror(root: Path) -> dict[str, str]:
    """The environment by which apt-get works below ``root``, where lists of an earlier day are."""
    for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/apt/lists/partial"):
        (root / name).mkdir(parents=True)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True)
    (root / "status").touch()
    # The port discard of this machine, where nobody listens.
    (root / "etc/apt/sources.list").write_text("deb [trusted=yes] http://127.0.0.1:9/debian stable main\n")
    (root / "var/lib/apt/lists/127.0.0.1:9_debian_dists_stable_main_binary-amd64_Packages").touch()
    (root / "apt.conf").write_text(_SETTINGS.format(root=root))
    return {"APT_CONFIG": str(root / "apt.conf"), "LC_ALL": "C"}
