"""Every user has private places on local disk, and the packages are the ones that were named."""

import re
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from molecule.conftest import MACHINES, Converge, On


def su(on: On, machine: str, user: str, command: str) -> CompletedProcess[str]:
    return on(machine, "su", "--login", user, "--command", command, check=False)


def settings(on: On, machine: str, user: str) -> dict[str, str]:
    """What Enroot is told for a user, after it made what it needs."""
    answer = su(on, machine, user, "enroot")
    assert answer.returncode == 0, answer.stderr
    return dict(line.split("=", 1) for line in answer.stdout.splitlines())


def version(on: On, machine: str) -> str:
    return on(machine, "dpkg-query", "--show", "--showformat=${Version}", "enroot").stdout


def test_each_user_has_private_directories(on: On, machine: str) -> None:
    told = settings(on, machine, "alice")
    paths = [told[f"ENROOT_{name}_PATH"] for name in ("RUNTIME", "DATA", "CACHE")]
    assert paths == ["/run/enroot/2001", "/var/lib/enroot/data/2001", "/var/lib/enroot/cache/2001"]
    for path in paths:
        assert on(machine, "stat", "--format=%U %a", path).stdout == "alice 700\n"
        # Nor may others put their own in its place.
        assert su(on, machine, "mallory", f"mv {path} {path}.gone").returncode != 0
    assert su(on, machine, "mallory", f"ls {paths[1]}").returncode != 0


@pytest.fixture
def taken(on: On, machine: str) -> Iterator[str]:
    """A directory that another user made where Laura's would be."""
    path = "/var/lib/enroot/data/2003"
    assert su(on, machine, "mallory", f"mkdir --mode=777 {path}").returncode == 0
    yield path
    on(machine, "rm", "--recursive", path)


def test_directory_that_somebody_else_made_is_not_taken(on: On, machine: str, taken: str) -> None:
    told = settings(on, machine, "laura")
    assert told["ENROOT_DATA_PATH"] != taken
    assert told["ENROOT_DATA_PATH"] == ""
    assert told["ENROOT_CACHE_PATH"] == "/var/lib/enroot/cache/2003"


def test_settings_are_the_declared_ones(on: On, machine: str) -> None:
    told = settings(on, machine, "alice")
    assert told["ENROOT_CONFIG_PATH"] == "/home/alice/.config/enroot"
    assert told["ENROOT_MOUNT_HOME"] == "yes"
    assert told["ENROOT_ROOTFS_WRITABLE"] == "no"
    assert told["ENROOT_MAX_CONNECTIONS"] == "4"
    assert told["ENROOT_RESTRICT_DEV"] == "yes"


def test_ordinary_users_have_namespaces(on: On, machine: str) -> None:
    answer = su(on, machine, "alice", "unshare --user --map-root-user id --user")
    assert answer.stdout == "0\n", answer.stderr


@pytest.fixture
def other_setting(on: On, converge: Converge) -> None:
    for name in MACHINES:
        on(name, "tee", "/proc/sys/net/ipv4/ip_default_ttl", data="66\n")
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.usefixtures("other_setting")
def test_setting_of_the_kernel_is_brought_back(on: On, machine: str) -> None:
    assert on(machine, "cat", "/proc/sys/net/ipv4/ip_default_ttl").stdout == "65\n"


@pytest.fixture
def declared_no_more(converge: Converge) -> Iterator[None]:
    answer = converge(kernel_settings={})
    assert answer.returncode == 0, answer.stdout + answer.stderr
    yield
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.usefixtures("declared_no_more")
def test_setting_that_is_declared_no_more_gets_back_what_it_had(on: On, machine: str) -> None:
    assert on(machine, "cat", "/proc/sys/net/ipv4/ip_default_ttl").stdout == "64\n"
    assert "ttl" not in on(machine, "cat", "/etc/sysctl.d/90-deploy-enroot.conf").stdout


def test_hook_is_in_force(on: On, machine: str) -> None:
    assert on(machine, "cat", "/etc/enroot/hooks.d/50-slurm-pmi.sh").stdout == "# a hook\n"


def test_only_the_group_puts_shared_images_there(on: On, machine: str) -> None:
    assert su(on, machine, "laura", "echo x > /srv/images/x.sqsh").returncode == 0
    assert su(on, machine, "alice", "cat /srv/images/x.sqsh").stdout == "x\n"
    assert su(on, machine, "alice", "echo y > /srv/images/y.sqsh").returncode != 0


def test_directories_are_there_again_after_a_boot(on: On, machine: str) -> None:
    on(machine, "rm", "--recursive", "--force", "/run/enroot")
    on(machine, "systemd-tmpfiles", "--create", "--boot")
    assert on(machine, "stat", "--format=%U %a", "/run/enroot").stdout == "root 1777\n"


def test_package_with_another_checksum_is_refused(on: On, converge: Converge) -> None:
    answer = converge(version="1.1", checksum="0" * 64)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    said = "did not match 0{64}; it was [0-9a-f]{64}"
    assert sorted(re.findall(rf"failed: \[molecule-enroot-(\w+)\].*{said}", answer.stderr)) == MACHINES
    assert [version(on, name) for name in MACHINES] == ["1.0"] * len(MACHINES)


@pytest.fixture
def newer(on: On, converge: Converge) -> Iterator[None]:
    answer = converge(version="1.1")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    yield
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [version(on, name) for name in MACHINES] == ["1.0"] * len(MACHINES)


@pytest.mark.usefixtures("newer")
def test_another_version_is_installed_and_the_settings_stay(on: On, machine: str) -> None:
    assert version(on, machine) == "1.1"
    assert settings(on, machine, "alice")["ENROOT_MAX_CONNECTIONS"] == "4"


IMAGES = {
    "debian": "docker://registry.test:5000#docker.io/library/debian",
    "debian:12": "docker://registry.test:5000#docker.io/library/debian:12",
    "debian@sha256:00ff": "docker://registry.test:5000#docker.io/library/debian@sha256:00ff",
    "team/tool:1": "docker://registry.test:5000#docker.io/team/tool:1",
    "docker.io/debian": "docker://registry.test:5000#docker.io/library/debian",
    "registry-1.docker.io#team/tool": "docker://registry.test:5000#docker.io/team/tool",
    "nvcr.io#nvidia/pytorch:25.01-py3": "docker://registry.test:5000#nvcr.io/nvidia/pytorch:25.01-py3",
    "nvcr.io/nvidia/cuda:12.4": "docker://registry.test:5000#nvcr.io/nvidia/cuda:12.4",
    # No cache has these, or their user has an account of his own.
    "quay.io#team/tool": "docker://quay.io#team/tool",
    "registry.test:5000#team/tool:1": "docker://registry.test:5000#team/tool:1",
    "$oauthtoken@nvcr.io#nvidia/private": "docker://$oauthtoken@nvcr.io#nvidia/private",
}
"""What is imported, by how users name it."""


@pytest.mark.parametrize("named", IMAGES)
def test_images_come_from_the_caches_that_there_are(on: On, machine: str, named: str) -> None:
    answer = su(on, machine, "alice", f"enroot import --output 'a b' 'docker://{named}'")
    assert answer.stdout.splitlines() == ["import", "--output", "a b", IMAGES[named]], answer.stderr


@pytest.mark.parametrize("command", ["load", "digest"])
def test_other_commands_that_fetch_go_there_too(on: On, machine: str, command: str) -> None:
    """Pyxis loads images where it is told to make no file of them (use_enroot_load)."""
    answer = su(on, machine, "alice", f"enroot {command} --name x docker://debian")
    assert answer.stdout.splitlines()[-1] == IMAGES["debian"], answer.stderr


def test_who_logs_in_elsewhere_himself_goes_there(on: On, machine: str) -> None:
    kept = "machine nvcr.io login $oauthtoken password KEY"
    on(
        machine,
        "install",
        "-D",
        "--owner=laura",
        "/dev/stdin",
        "/home/laura/.config/enroot/.credentials",
        data=kept,
    )
    for named, imported in (
        ("nvcr.io#nvidia/private", "docker://nvcr.io#nvidia/private"),
        ("debian", IMAGES["debian"]),
    ):
        assert su(on, machine, "laura", f"enroot import docker://{named}").stdout.splitlines()[-1] == imported


def test_containers_see_the_directories_that_are_named(on: On, machine: str) -> None:
    lines = on(machine, "cat", "/etc/enroot/mounts.d/50-deploy.fstab").stdout.splitlines()
    assert lines[1:] == [
        "/srv/shared /srv/shared none x-create=dir,rbind,rw,nosuid,nodev,rslave,nofail,silent"
    ]


def trusts(on: On, machine: str) -> bool:
    bundle = on(machine, "cat", "/etc/ssl/certs/ca-certificates.crt").stdout
    own = on(machine, "cat", "/usr/local/share/ca-certificates/deploy-registry.crt", check=False).stdout
    return bool(own) and own in bundle


@pytest.fixture
def without_registry(converge: Converge) -> Iterator[None]:
    answer = converge(trusts=False, caches=[])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    yield
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_programs_trust_the_registry(on: On, machine: str) -> None:
    assert trusts(on, machine)


@pytest.mark.usefixtures("without_registry")
def test_nobody_trusts_a_registry_that_is_gone(on: On, machine: str) -> None:
    assert not trusts(on, machine)
    assert on(machine, "ls", "/usr/local/bin/enroot", check=False).returncode != 0
    linked = on(machine, "sh", "-c", "ls /etc/ssl/certs | grep -c deploy-registry", check=False).stdout
    assert linked == "0\n"
