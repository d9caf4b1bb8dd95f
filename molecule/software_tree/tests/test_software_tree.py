"""A member of the group builds, everybody loads what was built, and root runs nothing of either tool."""

import json

from molecule.conftest import Converge, On

_EASYCONFIG = """\
easyblock = "ConfigureMake"
name = "greet"
version = "1.0"
homepage = "https://greet.example"
description = "Says what built it"
toolchain = SYSTEM
sources = ["%(name)s-%(version)s.tar.gz"]
skipsteps = ["configure"]
installopts = "PREFIX=%(installdir)s"
sanity_check_paths = {"files": ["bin/greet"], "dirs": []}
moduleclass = "tools"
"""
_BUILD = (
    "mkdir -p build && cat > build/greet-1.0.eb && cp /srv/archives/greet-1.0.tar.gz build && "
    "eb build/greet-1.0.eb"
)


def typed(on: On, machine: str, /, user: str, script: str, *, data: str = "", code: int = 0) -> str:
    answer = on(machine, "su", "--login", user, "--command", script, data=data, check=False)
    said = answer.stdout + answer.stderr
    assert answer.returncode == code, said
    return said


def test_a_member_of_the_group_builds_and_everybody_runs_it(on: On, machine: str) -> None:
    said = typed(on, machine, "bob", _BUILD, data=_EASYCONFIG)
    assert "COMPLETED: Installation ended successfully" in said
    assert typed(on, machine, "alice", "module load greet/1.0 && greet") == "built by EasyBuild\n"
    found = on(machine, "stat", "--format=%U %G %A", "/srv/software/easybuild/software/greet/1.0/bin").stdout
    assert found == "bob software drwxrwsr-x\n"
    # Another member adds to it, and the owner does.
    typed(on, machine, "builder", "touch /srv/software/easybuild/software/greet/1.0/bin/x")


def test_easyconfigs_of_the_project_are_found(on: On, machine: str) -> None:
    said = typed(on, machine, "bob", "eb --search ^zlib-1.3.1.eb")
    assert "/opt/easybuild/release/easyconfigs/easybuild/easyconfigs/z/zlib/zlib-1.3.1.eb" in said
    assert typed(on, machine, "bob", "eb --version").startswith(
        "This is EasyBuild 5.4.1 (framework: 5.4.1, easyblocks: 5.4.1)"
    )


def test_nothing_of_the_directory_that_it_is_typed_in_runs(on: On, machine: str) -> None:
    """What alice leaves there would run as bob, who decides what everybody runs."""
    trap = "mkdir --parents /srv/trap && tee /srv/trap/logging.py /srv/trap/easybuild.py /srv/trap/runpy.py"
    on(machine, "sh", "-c", trap, data="raise SystemExit('code of another')\n")
    said = typed(on, machine, "bob", "cd /srv/trap && eb --version")
    assert said.startswith("This is EasyBuild 5.4.1")


def test_who_is_no_member_builds_nothing_there(on: On, machine: str) -> None:
    again = _BUILD.replace("eb build", "eb --rebuild build")
    assert "Permission denied" in typed(on, machine, "alice", again, data=_EASYCONFIG, code=1)
    typed(on, machine, "alice", "touch /srv/software/x", code=1)


def test_root_builds_nothing(on: On, machine: str) -> None:
    assert "not as root" in on(machine, "spack", check=False).stderr
    answer = on(machine, "eb", "--search", "zlib", check=False)
    assert answer.returncode != 0
    assert "running EasyBuild with root privileges" in answer.stdout + answer.stderr


def test_spack_runs_as_its_user_with_the_settings_of_the_tree(on: On, machine: str) -> None:
    assert typed(on, machine, "alice", "spack --version") == "spack 1.0.2\nfor alice\n"
    read = "import json, sys, yaml; print(json.dumps([yaml.safe_load(open(name)) for name in sys.argv[1:]]))"
    files = [f"/etc/spack/{name}.yaml" for name in ("config", "modules", "packages", "repos")]
    config, modules, packages, repos = json.loads(on(machine, "python3", "-c", read, *files).stdout)
    assert config["config"]["install_tree"] == {"root": "/srv/software/spack/installed"}
    assert modules["modules"]["default"]["roots"] == {"tcl": "/srv/software/spack/modules"}
    assert packages["packages"]["all"]["permissions"] == {
        "read": "world",
        "write": "group",
        "group": "software",
    }
    assert on(machine, "ls", repos["repos"]["builtin"]).stdout == "repo.yaml\n"


def test_one_members_umask_does_not_lock_out_the_others_of_the_group(on: On, machine: str) -> None:
    for user in ("bob", "builder"):
        typed(on, machine, user, "umask 022 && spack reindex")
        assert typed(on, machine, user, "stat -c %a ~/.spack") == "700\n"
    assert on(machine, "cat", "/srv/software/spack/installed/.spack-db/lock").stdout == "bob\nbuilder\n"


def test_what_is_unpacked_only_root_changes(on: On, machine: str) -> None:
    others = "find -L /opt/easybuild /opt/spack ! -user root -o -perm /022 ! -type l"
    assert on(machine, "sh", "-c", others).stdout == ""


def test_an_archive_with_another_checksum_is_refused(converge: Converge, machine: str) -> None:
    answer = converge(only=machine, checksum="1" * 64)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert f"did not match {'1' * 64}" in answer.stdout + answer.stderr
