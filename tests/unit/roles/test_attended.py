import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract.content import options
from tests.unit.roles.loading import ROOT, load_module

texts = load_module("roles/bootstrap/module_utils/attended_texts.py")
module = load_module("roles/bootstrap/library/attended.py")

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


class FakeModule:
    """An AnsibleModule that runs what it is told."""

    def get_bin_path(self, name: str) -> str | None:
        return shutil.which(name)

    def run_command(self, command: list[str], environ_update: dict[str, str]) -> tuple[int, str, str]:
        done = subprocess.run(
            command, env={**os.environ, **environ_update}, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr


# What Debian's file ends with: needrestart.conf itself reads the directory beside it.
_READS_THE_OTHERS = """
foreach my $fn (sort <{place}/conf.d/*.conf>) {{
    print STDERR "$LOGPREF eval $fn\\n" if($nrconf{{verbosity}} > 1);
    eval do {{ local(@ARGV, $/) = $fn; <>}};
    die "Error parsing $fn: $@" if($@);
}}
"""


def needrestart(place: Path, **files: str) -> list[str]:
    """What is said of a host whose needrestart is told so, beside what deploy tells it."""
    directory = place / "conf.d"
    directory.mkdir(mode=0o755)
    text = "$nrconf{override_rc} = { qr(^dbus) => 0 };\n" + _READS_THE_OTHERS.format(place=place)
    (directory / "zz-deploy.conf").write_text(texts.needrestart_text(["slurm", "munge"]))
    for name, content in files.items():
        (directory / f"{name}.conf").write_text(content)
    (place / "needrestart.conf").write_text(text + files.get("last", ""))
    return list(module.needrestart_objections(FakeModule(), ["slurm", "munge"], place / "needrestart.conf"))


@pytest.fixture
def _roots_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests is root here."""
    monkeypatch.setattr(module, "_is_roots", lambda path: not path.stat().st_mode & 0o022)


@pytest.mark.usefixtures("_roots_alone")
@pytest.mark.parametrize(
    ("files", "restarted"),
    [
        ({}, None),
        ({"a": "$nrconf{restart} = 'a';\n"}, None),
        ({"zzz": "$nrconf{override_rc}{qr(^ssh)} = 1;\n"}, None),
        ({"zzz": "$nrconf{override_rc} = {};\n"}, "munge.service, slurmctld.service, slurmd.service"),
        ({"zzz": "$nrconf{override_rc} = {};\n$nrconf{defno} = 1;\n"}, None),
        ({"zzz": "$nrconf{override_rc} = {};\n$nrconf{restart} = 'l';\n"}, None),
        (
            {"zzz": "$nrconf{override_rc} = {};\npush(@{$nrconf{blacklist_rc}}, qr(^slurm));\n"},
            "munge.service",
        ),
        ({"a": "$nrconf{override_rc}{qr(^slurmd\\.)} = 1;\n"}, "slurmd.service"),
        ({"last": "$nrconf{override_rc}{qr(^munge)} = 1;\n"}, "munge.service"),
    ],
)
def test_what_holds_of_all_files_of_needrestart(
    tmp_path: Path, files: dict[str, str], restarted: str | None
) -> None:
    said = needrestart(tmp_path, **files)
    if restarted is None:
        assert said == []
    else:
        assert f"needrestart may restart {restarted}" in said[0]


@pytest.mark.usefixtures("_roots_alone")
def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (said,) = needrestart(tmp_path, zzz="$nrconf{\n")
    assert "cannot be read" in said
    assert "zzz.conf" in said


@pytest.mark.usefixtures("_roots_alone")
def test_nothing_is_run_that_others_may_write(tmp_path: Path) -> None:
    strange = tmp_path / "conf.d" / "x.conf"
    done = tmp_path / "done"
    needrestart(tmp_path, x=f"open(my $f, '>', '{done}');\n")
    assert done.exists()
    done.unlink()
    strange.chmod(0o666)
    (said,) = module.needrestart_objections(FakeModule(), ["slurm"], tmp_path / "needrestart.conf")
    assert "not judged" in said
    assert str(strange) in said
    assert not done.exists()


def test_without_needrestart_there_is_nothing_to_judge(tmp_path: Path) -> None:
    found = module.needrestart_objections(FakeModule(), ["slurm"], tmp_path / "needrestart.conf")
    assert list(found) == []
