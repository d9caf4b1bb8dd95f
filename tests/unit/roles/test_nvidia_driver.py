import importlib
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

devices = importlib.import_module("ansible.module_utils.nvidia_devices")
choice = load_module("roles/nvidia_driver/module_utils/driver_choice.py")
state = load_module("roles/nvidia_driver/library/nvidia_driver_state.py")
machine = load_module("roles/nvidia_driver/library/nvidia_machine.py")
components = load_module("playbooks/library/apt_components.py")

V100, A100, B200 = devices.VOLTA, devices.AMPERE, devices.BLACKWELL


@pytest.mark.parametrize(
    ("known", "wish", "prefers_open", "expected"),
    [
        ([A100], "auto", True, "open"),
        ([A100], "auto", False, "proprietary"),
        ([V100], "auto", True, "proprietary"),
        ([B200], "auto", False, "open"),
        ([], "auto", True, "open"),
        ([A100], "proprietary", True, "proprietary"),
        ([V100, A100], "auto", True, "proprietary"),
        ([V100, B200], "none", True, "none"),
    ],
)
def test_modules(known: list[object], wish: str, prefers_open: bool, expected: str) -> None:  # noqa: FBT001
    assert choice.choose_modules(known, wish, prefers_open=prefers_open) == expected


@pytest.mark.parametrize(
    ("known", "wish", "reason"),
    [
        ([V100], "open", "open kernel modules do not drive Volta"),
        ([B200], "proprietary", "only the open kernel modules drive Blackwell"),
        ([V100, B200], "auto", "no kernel module drives both Blackwell"),
    ],
)
def test_what_does_not_drive_the_gpus_is_refused(known: list[object], wish: str, reason: str) -> None:
    with pytest.raises(choice.NotDrivenError, match=reason):
        choice.choose_modules(known, wish, prefers_open=True)


@pytest.mark.parametrize(
    ("known", "branch", "modules", "expected"),
    [
        ([A100], 535, "open", []),
        ([B200], 550, "open", ["Blackwell needs branch 570 or later, and 550 is to be installed"]),
        ([V100], 590, "proprietary", ["the last branch for Volta is 580, and 590 is to be installed"]),
        ([A100], 470, "open", ["open kernel modules are part of branch 515 and later, not of 470"]),
    ],
)
def test_branch(known: list[object], branch: int, modules: str, expected: list[str]) -> None:
    assert list(choice.check_branch(known, branch, modules)) == expected


@pytest.mark.parametrize(
    ("running", "on_disk", "has_nouveau", "missing", "expected"),
    [
        ("", "550.1", False, [], ["nvidia", "nvidia_uvm"]),
        ("", "550.1", False, ["ib_umad"], ["ib_umad", "nvidia", "nvidia_uvm"]),
        ("550.1", "550.1", False, [], []),
        ("550.1", "550.1", False, ["ib_umad"], ["ib_umad"]),
        ("535.1", "550.1", False, [], "reboot"),
        ("535.1", "550.1", False, ["ib_umad"], "reboot"),
        ("", "550.1", True, [], "reboot"),
    ],
)
def test_what_brings_the_driver_into_the_kernel(
    running: str,
    on_disk: str,
    has_nouveau: bool,  # noqa: FBT001
    missing: list[str],
    expected: str | list[str],
) -> None:
    decision = state.decide(running, on_disk, missing, has_nouveau=has_nouveau)
    action = "reboot" if expected == "reboot" else "load" if expected else "none"
    assert (decision.action, decision.loads) == (action, [] if expected == "reboot" else expected)


def test_why_a_module_is_not_loaded() -> None:
    assert "mokutil" in state.why_not_loaded(
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
    )
    assert "dmesg" in state.why_not_loaded("modprobe: ERROR: could not insert 'nvidia': No such device")


@pytest.mark.parametrize(
    ("kernel", "flavour"),
    [
        ("6.1.0-56-amd64", "amd64"),
        ("6.1.0-56-cloud-amd64", "cloud-amd64"),
        ("6.12.57+deb13-cloud-arm64", "cloud-arm64"),
        ("6.8.0-49-generic", "generic"),
        ("6.8.0-1019-nvidia-64k", "nvidia-64k"),
    ],
)
def test_flavours_of_kernels(kernel: str, flavour: str) -> None:
    assert machine.flavour(kernel) == flavour


def test_headers_come_with_the_kernels_that_are_upgraded() -> None:
    shown = [
        *("installed linux-image-6.1.0-56-cloud-amd64", "installed linux-image-cloud-amd64"),
        *("not-installed linux-image-amd64", "config-files linux-image-rt-amd64"),
        *("installed linux-image-generic-hwe-22.04", "installed linux-image-unsigned-6.8.0-49-generic"),
        "installed linux-image-amd64-dbg",
    ]
    assert machine.followers("\n".join(shown)) == [
        "linux-headers-cloud-amd64",
        "linux-headers-generic-hwe-22.04",
    ]
    assert machine.followers("dpkg-query: no packages found matching linux-image-*\n") == []


DKMS, SHIM, OWN = "/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der", "/root/site.der"


@pytest.mark.parametrize(
    ("there", "settings", "expected"),
    [
        ([DKMS], "", DKMS),
        ([SHIM], "", SHIM),
        # On Debian the other one is a key that somebody made for something else.
        ([DKMS, SHIM], '# mok_certificate="/var/lib/example.der"\n', DKMS),
        ([DKMS, SHIM, OWN], f'mok_signing_key="/root/site.priv"\nmok_certificate="{OWN}"\n', OWN),
        ([DKMS, OWN], "mok_certificate=/lib/modules/${kernelver}/mok.der\n", DKMS),
        ([], "", DKMS),
    ],
)
def test_the_key_that_is_to_be_enrolled_is_the_one_that_signed(
    tmp_path: Path, there: list[str], settings: str, expected: str
) -> None:
    for name in [*there, "/etc/dkms/framework.conf"]:
        place = tmp_path / name[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(settings if name.endswith(".conf") else "")
    said = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
    assert f"mokutil --import {expected}, " in state.why_not_loaded(said, tmp_path)


def test_where_a_module_of_the_distribution_may_be() -> None:
    said = "modprobe: FATAL: Module ib_umad not found in directory /lib/modules/6.8.0-60-generic"
    assert "linux-modules-extra-6.8.0-60-generic" in state.why_not_beside(said, "6.8.0-60-generic")
    assert "linux-modules-extra" not in state.why_not_beside("modprobe: ERROR: Cannot allocate memory", "6.8")


def test_why_no_module_was_built() -> None:
    assert "headers" in state.why_not_built("0.0-no-such-kernel")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("install modprobe -i nvidia-current $CMDLINE_OPTS NVreg_X=0 \n", "535.309.01 of nvidia-current"),
        ("insmod /lib/modules/6.8/updates/dkms/nvidia.ko \n", "535.309.01 of nvidia"),
        ("", "535.309.01 of nvidia"),
    ],
)
def test_modules_are_found_by_the_names_that_debian_gave_them(shown: str, expected: str) -> None:
    driver = load_module("playbooks/module_utils/host_checks/nvidia_driver.py")

    def run(*command: str) -> str:
        assert "6.8" in command
        return f"535.309.01 of {command[-1]}\n" if command[0] == "modinfo" else shown

    assert driver.module_version(run, "6.8") == expected


def test_what_the_compiler_said_and_what_may_help(tmp_path: Path) -> None:
    assert state.failed_build(tmp_path) is None
    log = tmp_path / "nvidia-current/550/build/make.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "DKMS make.log for nvidia-current-550.163.01 for kernel 6.12.117+deb13-amd64 (x86_64)\nCC nv.o\n"
        "nv-pci.c:237:9: error: too few arguments\nmake: *** Error 2\n# elapsed time: 00:10:28\n"
    )
    assert state.failed_build(tmp_path) == log
    why = state.why_not_built_here(log, "open")
    assert f"for the kernel 6.12.117+deb13-amd64 ({log}):\nnv-pci.c:237:9: error: too few arguments\n" in why
    assert "nvidia_driver_kernel_modules: proprietary" in why
    assert "nvidia_driver_kernel_modules" not in state.why_not_built_here(log, "proprietary")
    log.write_text("bad exit status: 2\n")
    assert state.errors_in(log) == "bad exit status: 2"


def test_half_configured_modules_are_found_in_what_dpkg_shows() -> None:
    shown = "ii \tdkms\niF \tnvidia-open-kernel-dkms\niU \tlibcuda1\nii \tnvidia-kernel-dkms\n"
    assert state._HALF_CONFIGURED.findall(shown) == ["nvidia-open-kernel-dkms"]


LINES = """\
# deb http://old.example/debian bookworm main
deb [signed-by=/k.asc arch=amd64] http://mirror.example/debian bookworm main  # ours
deb http://mirror.example/debian bookworm-updates main non-free
deb-src http://mirror.example/debian bookworm main
deb http://vendor.example/apt stable vendor
"""
STANZAS = """\
Types: deb deb-src
URIs: http://a.example/debian
Suites: trixie trixie-updates
Components: main
Signed-By: /usr/share/keyrings/debian.gpg

# off
Types: deb
Enabled: no
URIs: http://b.example/debian
Suites: trixie
Components: main
"""


def test_components_are_added_where_main_is_and_they_are_not() -> None:
    text = components.wanted(list(components.of_lines(LINES)), ["contrib", "non-free"])
    assert text.count("Types: deb") == 2
    assert "Suites: bookworm\nComponents: contrib non-free\nSigned-By: /k.asc\n" in text
    assert "Suites: bookworm-updates\nComponents: contrib\n" in text
    assert "vendor" not in text


def test_stanzas_are_read_and_those_that_are_off_are_not() -> None:
    found = list(components.of_stanzas(STANZAS))
    assert [(origin.uri, origin.suite) for origin, _ in found] == [
        ("http://a.example/debian", "trixie"),
        ("http://a.example/debian", "trixie-updates"),
    ]
    assert found[0][0].signed_by == "/usr/share/keyrings/debian.gpg"


def test_nothing_to_add_is_no_file() -> None:
    line = "deb http://mirror.example/debian bookworm main contrib"
    assert components.wanted(list(components.of_lines(line)), ["contrib"]) == ""


POLICY = """\
libcuda1:
  Installed: (none)
  Candidate: 535.309.01-0+deb12u1
  Version table:
     535.309.01-0+deb12u1 500
        500 http://mirror.example/debian bookworm/non-free amd64 Packages
"""


@pytest.mark.parametrize(("version", "expected"), [("535.", True), ("", True), ("550.", False)])
def test_what_apt_offers(version: str, expected: bool) -> None:  # noqa: FBT001
    assert components.offers(POLICY, version) is expected


def test_an_unknown_package_is_not_offered() -> None:
    assert not components.offers("", "")
    assert not components.offers("x:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n", "")


@pytest.mark.parametrize(
    "directory",
    [
        "usr/lib/x86_64-linux-gnu",
        "usr/lib/x86_64-linux-gnu/nvidia/current",
        "usr/lib64",
        "usr/lib",
        "usr/local/nvidia/lib64",
    ],
)
def test_the_library_is_found_where_installers_put_it(tmp_path: Path, directory: str) -> None:
    driver = load_module("playbooks/module_utils/host_checks/nvidia_driver.py")
    place = tmp_path / directory
    place.mkdir(parents=True)
    (place / "libnvidia-ml.so.535.309.01").touch()
    (place / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.535.309.01")
    assert driver.library_version(tmp_path) == "535.309.01"
