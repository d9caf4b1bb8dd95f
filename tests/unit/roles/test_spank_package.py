import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.roles.loading import load_module

package = load_module("roles/pyxis/library/spank_package.py")
deb = load_module("playbooks/library/deb_current.py")
config = load_module("roles/slurmctld/library/slurmctld_config.py")


@pytest.mark.parametrize(
    ("version", "own"),
    [("22.05.8-4+deb12u3", "22.05.8"), ("1:24.11.5-4", "24.11.5"), ("26.05.5-1~x-2", "26.05.5-1~x")],
)
def test_slurms_own_version(version: str, own: str) -> None:
    assert package.upstream(version) == own


def test_version_names_all_that_it_depends_on() -> None:
    assert package.package_version("0.24.0", "24.11.5", "9c4cdb79a67301") == "0.24.0+slurm24.11.5+9c4cdb79"


def test_package_depends_on_this_slurm_alone() -> None:
    text = package.control("1.0+slurm24.11.9+0", "24.11.9-4+deb13u1", "arm64")
    assert "Depends: libc6, slurm-client (>= 24.11.9), slurm-client (<< 24.11.10~)\n" in text
    assert "Architecture: arm64\n" in text
    assert "slurm-client (>= 1:24.11.9), slurm-client (<< 1:24.11.10~)" in package.control(
        "1", "1:24.11.9-4", "x"
    )


def test_plugins_lie_where_slurms_own_do() -> None:
    files = "/usr\n/usr/lib/x/slurm-wlm/auth_none.so\n/usr/lib/x/slurm-wlm/select_cons_tres.so\n"
    assert package.plugin_directory(files) == "/usr/lib/x/slurm-wlm"
    assert package.plugin_directory("/usr\n") == ""


def test_fields_of_a_package_file() -> None:
    assert deb.parse_fields("Package: enroot+caps\nVersion: 4.2.1-1\n") == ("enroot+caps", "4.2.1-1")


def test_only_what_is_wholly_installed_counts() -> None:
    shown = "ii \ta\t1\niU \tb\t1\nrc \tc\t1\nun \td\t\n"
    assert deb.parse_installed(shown) == {("a", "1")}


def test_lines_that_are_not_in_force_stay_out() -> None:
    files = {"plugstack.conf": "# x\nrequired a.so\nrequired b.so\n", "slurm.conf": "required b.so\n"}
    lines = {"plugstack.conf": ["required a.so", "required b.so"]}
    current = {"plugstack.conf": "required a.so\n"}
    assert config.without_new(files, current, lines) == {**files, "plugstack.conf": "# x\nrequired a.so\n"}
    assert config.without_new(files, current, {}) == files


def test_a_line_that_waits_for_all_hosts_is_named() -> None:
    wanted, kept = {"plugstack.conf": "# x\nrequired b.so\n"}, {"plugstack.conf": "# x\n"}
    assert config.left_out(wanted, kept, Path("/etc/slurm")) == [
        "/etc/slurm/plugstack.conf without 'required b.so': a run without --limit adds it"
    ]
    assert config.left_out(wanted, wanted, Path("/etc/slurm")) == []


@pytest.mark.parametrize(
    ("installed", "wanted", "unpacked", "expected"),
    [
        ("24.11.5-4", "", None, ""),
        ("24.11.5-4", "26.05", "26.05.5-1", "26.05.5-1"),
        # An upgrade that goes on has the release installed on the host that builds.
        ("26.05.5-1", "26.05", None, ""),
        ("24.11.5-4", "26.05", None, "failed: Slurm 26.05 is not unpacked in {}: there is none"),
        ("24.11.5-4", "26.05", "25.05.1-1", "failed: Slurm 26.05 is not unpacked in {}: there is 25.05.1-1"),
    ],
)
def test_which_slurm_it_is_built_for(
    tmp_path: Path, installed: str, wanted: str, unpacked: str | None, expected: str
) -> None:
    if unpacked:
        (tmp_path / "version").write_text(f"{unpacked}\n")

    class Failed(Exception):  # noqa: N818 - the module ends there
        pass

    def fail_json(msg: str) -> None:
        raise Failed(msg)

    params = {"archive": "a", "source": "s", "package": "p", "wanted": wanted, "staged": str(tmp_path)}
    build = package.Build(SimpleNamespace(params=params, fail_json=fail_json))
    if expected.startswith("failed: "):
        with pytest.raises(Failed, match=re.escape(expected.removeprefix("failed: ").format(tmp_path))):
            build.beside(installed)
    else:
        assert build.beside(installed) == expected


@pytest.mark.parametrize(
    ("there", "headers", "plugins"),
    [
        ("slurm-client", "libslurm-dev", "slurm-wlm-basic-plugins"),
        ("slurm-smd-client", "slurm-smd-dev", "slurm-smd"),
    ],
)
def test_whoever_packaged_slurm(there: str, headers: str, plugins: str) -> None:
    def run_command(command: list[str]) -> tuple[int, str, str]:
        return (0, "ii  26.05.3-1", "") if command[-1] == there else (1, "", "no")

    params = {"archive": "a", "source": "s", "package": "p"}
    build = package.Build(SimpleNamespace(params=params, run_command=run_command))
    assert build.slurm() == "26.05.3-1"
    assert (build.headers, build.plugins) == (headers, plugins)
    assert f"Depends: libc6, {there} (>= 26.05.3)" in package.control("1", "26.05.3-1", "amd64", there)


def test_files_of_a_release_that_is_unpacked(tmp_path: Path) -> None:
    plugin = tmp_path / "usr/lib/x86_64-linux-gnu/slurm-wlm/select_cons_tres.so"
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    build = package.Build(SimpleNamespace(params={"archive": "a", "source": "s", "package": "p"}))
    files = build.files(tmp_path)
    assert package.plugin_directory(files) == "/usr/lib/x86_64-linux-gnu/slurm-wlm"
