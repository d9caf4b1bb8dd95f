import re

import pytest

from tests.contract.content import options
from tests.unit.roles.loading import ROOT, load_module

texts = load_module("roles/bootstrap/module_utils/attended_texts.py")

PACKAGES = ["slurm", "munge"]


def dump(*more: str) -> str:
    """As apt-config writes it."""
    own = [f'{texts.BLACKLIST} "";', *(f'{texts.BLACKLIST}:: "{name}";' for name in PACKAGES)]
    return "".join(f"{line}\n" for line in ['APT "";', *own, f'{texts.REBOOT} "false";', *more])


def test_what_apt_is_told() -> None:
    assert texts.apt_text(PACKAGES).splitlines()[1:] == [
        "Unattended-Upgrade::Package-Blacklist {",
        '    "slurm";',
        '    "munge";',
        "};",
        'Unattended-Upgrade::Automatic-Reboot "false";',
    ]
    assert "$nrconf{override_rc}{qr(^slurm)} = 0;\n" in texts.needrestart_text(["slurm"])


@pytest.mark.parametrize(
    ("said", "objection"),
    [
        (dump(), []),
        (dump(f'{texts.BLACKLIST}:: "firefox";'), []),
        (dump().replace(f'{texts.BLACKLIST}:: "munge";\n', ""), [f"{texts.BLACKLIST} lacks munge"]),
        ("", [f"{texts.BLACKLIST} lacks slurm, munge"]),
        (dump().replace('"false"', '"true"'), [f"{texts.REBOOT} is on"]),
    ],
)
def test_what_another_file_takes_back_is_named(said: str, objection: list[str]) -> None:
    assert list(texts.objections(said, PACKAGES)) == objection


@pytest.mark.parametrize(
    "package",
    [
        *("slurmctld", "slurm-wlm-basic-plugins", "libslurm42", "libpam-slurm-adopt", "slurm-smd"),
        *("munge", "libmunge2", "mariadb-server", "libmariadb3", "galera-4"),
        *("nvidia-driver-libs", "libnvidia-ml1", "libcuda1", "nvidia-kernel-dkms", "datacenter-gpu-manager"),
        *(
            "xserver-xorg-video-nvidia",
            "firmware-nvidia-gsp",
            "libxnvctrl0",
            "pyxis",
            "libpmix2t64",
            "cuda-drivers",
        ),
        *("linux-modules-nvidia-570-server-generic", "nvidia-fabricmanager-570", "libnvsdm"),
    ],
)
def test_the_defaults_know_what_jobs_live_on(package: str) -> None:
    patterns = options(ROOT / "roles/bootstrap")["bootstrap_attended_packages"]["default"]
    assert any(re.match(pattern, package) for pattern in patterns)


@pytest.mark.parametrize("package", ["openssl", "linux-image-amd64", "openssh-server", "libc6", "cudd"])
def test_all_else_is_upgraded_as_before(package: str) -> None:
    patterns = options(ROOT / "roles/bootstrap")["bootstrap_attended_packages"]["default"]
    assert not any(re.match(pattern, package) for pattern in patterns)
