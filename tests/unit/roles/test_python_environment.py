"""An environment is built once from its lock file, and what runs from it keeps it."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/python_environment.py")


class Refused(Exception):  # noqa: N818 - the module's end
    pass


class Machine:
    """An AnsibleModule with a python3 whose venv and pip write down what they were asked."""

    def __init__(self, place: Path, **params: object) -> None:
        self.params = {"path": str(place / "environment"), "index_url": "", "find_links": "", **params}
        self.check_mode = False
        self.called: list[list[str]] = []
        self.fails = False

    def run_command(self, command: list[str], **_: object) -> tuple[int, str, str]:
        self.called.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(exist_ok=True)
        if "pip" in command and self.fails:
            return 1, "", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"
        return 0, "3.13.5\n", ""

    def fail_json(self, *, msg: str) -> NoReturn:
        raise Refused(msg)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "lock"
    path.write_text("a==1 --hash=sha256:00\n")
    return path


def build(machine: Machine, lock: Path) -> Path:
    made = module.Environment(machine)
    place: Path = made.place(lock)
    if not made.is_current(place):
        made.build(place, lock)
    assert made.is_current(place)
    return place


def test_only_wheels_with_their_checksums_are_installed(tmp_path: Path, lock: Path) -> None:
    machine = Machine(tmp_path)
    place = build(machine, lock)
    pip = next(command for command in machine.called if "pip" in command)
    assert {"--require-hashes", "--no-deps", "--only-binary", ":all:"} <= {*pip}
    assert pip[-1] == str(lock)
    assert (tmp_path / "environment").resolve() == place
    machine.called.clear()
    build(machine, lock)
    assert not [command for command in machine.called if "pip" in command]


def test_another_list_makes_another_one_and_the_one_before_stays(tmp_path: Path, lock: Path) -> None:
    machine = Machine(tmp_path)
    places = []
    for version in (1, 2, 3):
        lock.write_text(f"a=={version} --hash=sha256:00\n")
        places.append(build(machine, lock))
    assert [place.exists() for place in places] == [False, True, True]
    assert (tmp_path / "environment").resolve() == places[2]
    assert [(place / "complete").exists() for place in places[1:]] == [False, True]


def test_what_does_not_fit_its_checksum_is_not_used(tmp_path: Path, lock: Path) -> None:
    machine = Machine(tmp_path)
    machine.fails = True
    with pytest.raises(Refused, match="DO NOT MATCH"):
        build(machine, lock)
    assert not (tmp_path / "environment").exists()
    machine.fails = False
    assert (build(machine, lock) / "complete").exists()


def test_a_source_of_the_site_is_the_only_one(tmp_path: Path, lock: Path) -> None:
    machine = Machine(tmp_path, find_links="/srv/wheels")
    build(machine, lock)
    pip = next(command for command in machine.called if "pip" in command)
    assert "--no-index" in pip
    assert pip[pip.index("--find-links") + 1] == "/srv/wheels"


certificates = load_module("roles/slurm_portal/library/portal_certificate.py")


class WithOpenssl(Machine):
    def run_command(self, command: list[str], **_: object) -> tuple[int, str, str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def portal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - loaded here
    def replace(path: Path, text: bytes, mode: int, _: object) -> None:
        path.write_bytes(text)
        path.chmod(mode)

    monkeypatch.setattr(certificates, "replace_file", replace)
    names = ["portal.site.example", "login1", "10.0.0.2", ""]
    return certificates.Certificate(
        WithOpenssl(tmp_path, directory=str(tmp_path), names=names, certificate="", key="")
    )


def test_a_certificate_of_the_hosts_own_authority(portal: Any, tmp_path: Path) -> None:  # noqa: ANN401
    assert not portal.is_fit()
    certificate, key = portal.make()
    portal.certificate.write_bytes(certificate)
    portal.key.write_bytes(key)
    assert portal.is_fit()
    verify = ["openssl", "verify", "-CAfile", str(tmp_path / "authority.crt")]
    for option in (("-verify_hostname", "portal.site.example"), ("-verify_ip", "10.0.0.2")):
        subprocess.run([*verify, *option, str(portal.certificate)], check=True, capture_output=True)
    assert (tmp_path / "authority.key").stat().st_mode & 0o777 == 0o600
    portal._module.params["names"] = ["another.site.example"]
    assert not portal.is_fit()


def test_a_key_of_another_certificate_is_refused(portal: Any, tmp_path: Path) -> None:  # noqa: ANN401
    for name in ("one", "two"):
        certificate, key = portal.make()
        (tmp_path / f"{name}.crt").write_bytes(certificate)
        (tmp_path / f"{name}.key").write_bytes(key)
    portal._module.params |= {"certificate": str(tmp_path / "one.crt"), "key": str(tmp_path / "one.key")}
    assert portal.of_site()[0] == (tmp_path / "one.crt").read_bytes()
    portal._module.params["key"] = str(tmp_path / "two.key")
    with pytest.raises(Refused, match="is not the key of"):
        portal.of_site()
    shutil.rmtree(tmp_path / "gone", ignore_errors=True)
    portal._module.params["key"] = str(tmp_path / "gone.key")
    with pytest.raises(Refused, match="No such file"):
        portal.of_site()
