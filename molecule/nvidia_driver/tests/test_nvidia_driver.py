"""Programs find the driver they were promised; what would not drive the GPUs is refused first."""

import re
import time

import pytest

from molecule.conftest import Converge, On

BRANCH = {"bookworm": "535", "trixie": "550"}
# CUDA's version is the driver's own word, and each branch has one.
CUDA = {"bookworm": 12020, "trixie": 12040}
ASK_LIBCUDA = """
import ctypes
version = ctypes.c_int()
library = ctypes.CDLL("libcuda.so.1")
assert library.cuDriverGetVersion(ctypes.byref(version)) == 0
print(version.value)
"""


@pytest.fixture(params=list(BRANCH))
def debian(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def version(on: On, machine: str, package: str) -> str:
    return on(machine, "dpkg-query", "--show", "--showformat=${Version}", package).stdout


def candidate(on: On, machine: str, package: str) -> str:
    found = re.search(r"Candidate: (\S+)", on(machine, "apt-cache", "policy", package).stdout)
    return found[1] if found else ""


def test_programs_get_the_driver_of_the_branch(on: On, debian: str) -> None:
    assert int(on(debian, "python3", "-c", ASK_LIBCUDA).stdout) == CUDA[debian]


def test_nvidia_smi_looks_for_a_driver(on: On, debian: str) -> None:
    answer = on(debian, "nvidia-smi", check=False)
    assert answer.returncode == 9, "it started, and found no driver in the kernel"


def test_userspace_is_of_one_version(on: On, debian: str) -> None:
    names = ("libcuda1", "libnvidia-ml1", "nvidia-smi", "libnvidia-ptxjitcompiler1")
    assert len({version(on, debian, name) for name in names}) == 1
    assert version(on, debian, "libcuda1").startswith(f"{BRANCH[debian]}.")
    assert version(on, debian, "nvidia-persistenced").startswith(f"{BRANCH[debian]}.")


def test_nothing_of_a_desktop_is_installed(on: On, debian: str) -> None:
    names = on(debian, "dpkg-query", "--show", "--showformat=${Package}\n").stdout.split()
    assert [name for name in names if name.startswith(("xserver", "libgtk", "nvidia-settings"))] == []


def test_the_kernel_prefers_the_driver_to_nouveau(on: On, debian: str) -> None:
    settings = on(debian, "sh", "-c", "cat /etc/modprobe.d/*.conf").stdout
    assert "blacklist nouveau\n" in settings
    assert "options nvidia NVreg_RestrictProfilingToAdminUsers=0\n" in settings


def test_a_driver_of_another_branch_became_the_wanted_one_and_no_later(on: On) -> None:
    assert version(on, "vendor", "nvidia-driver-cuda") == "580.95.05-1"
    assert version(on, "vendor", "nvidia-persistenced") == "580.95.05-1"
    for name in ("nvidia-driver-cuda", "nvidia-persistenced"):
        assert candidate(on, "vendor", name).startswith("580.")


def test_fabric_manager_is_of_the_drivers_version_though_there_is_a_later_one(on: On) -> None:
    assert version(on, "vendor", "nvidia-fabricmanager") == "580.95.05-1"


def test_open_modules_are_chosen_for_these_gpus(on: On) -> None:
    installed = on("vendor", "dpkg-query", "--show", "--showformat=${Package}\n").stdout.split()
    assert "nvidia-kernel-open-dkms" in installed
    assert "nvidia-kernel-dkms" not in installed


def test_headers_come_with_every_kernel_that_the_machine_is_upgraded_to(on: On) -> None:
    installed = on("vendor", "dpkg-query", "--show", "--showformat=${Package}\n").stdout.split()
    assert [name for name in installed if name.startswith("linux-headers-")] == ["linux-headers-cloud-amd64"]


@pytest.mark.parametrize("service", ["nvidia-persistenced", "nvidia-fabricmanager"])
def test_daemons_run_and_start_with_the_machine(on: On, service: str) -> None:
    assert on("vendor", "systemctl", "is-active", service).stdout == "active\n"
    assert on("vendor", "systemctl", "is-enabled", service).stdout == "enabled\n"


DROP_IN = "/etc/systemd/system/nvidia-persistenced.service.d/deploy.conf"


def arguments(on: On, service: str) -> list[str]:
    """With what a service runs."""
    number = on("vendor", "systemctl", "show", "--property=MainPID", "--value", service).stdout.strip()
    return on("vendor", "cat", f"/proc/{number}/cmdline").stdout.split("\0")


def test_how_persistenced_is_started_is_read_where_the_package_says_it(on: On, debian: str) -> None:
    said = on(debian, "cat", "/usr/lib/systemd/system/nvidia-persistenced.service").stdout
    assert re.search("^ExecStart=.*nvidia-persistenced", said, re.MULTILINE)


def test_persistenced_keeps_the_driver_ready_though_its_package_says_no(on: On) -> None:
    words = arguments(on, "nvidia-persistenced")
    assert words[1:] == ["/usr/bin/nvidia-persistenced", "--user", "root", "--verbose", ""]


def test_what_links_b200_has_the_modules_of_the_kernel_that_it_asks_for(on: On, converge: Converge) -> None:
    on("vendor", "mount", "-t", "tmpfs", "tmpfs", "/sys/module")
    modprobe = "#!/bin/sh\ncase $1 in -*) exit 1;; esac\nmkdir /sys/module/$1\n"
    on(
        "vendor",
        "sh",
        "-c",
        "cat > /usr/local/sbin/modprobe; chmod +x /usr/local/sbin/modprobe",
        data=modprobe,
    )
    replace = "sed -i s/{}/{}/ /sys/bus/pci/devices/*/device; systemctl stop nvidia-fabricmanager"
    on("vendor", "sh", "-c", replace.format("0x2330", "0x2901"))
    try:
        answer = converge(only="vendor")
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert on("vendor", "ls", "/sys/module").stdout.split() == ["ib_umad", "mlx5_ib"]
        assert on("vendor", "systemctl", "is-active", "nvidia-fabricmanager").stdout == "active\n"
        at_boot = on("vendor", "cat", "/etc/modules-load.d/deploy-nvidia.conf").stdout.split("\n")
        assert at_boot[1:] == ["nvidia", "nvidia_uvm", "mlx5_ib", "ib_umad", ""]
        assert "changed=0" in converge(only="vendor").stdout
    finally:
        on("vendor", "sh", "-c", replace.format("0x2901", "0x2330"))
        on("vendor", "sh", "-c", "umount /sys/module; rm /usr/local/sbin/modprobe")
    assert converge(only="vendor").returncode == 0


def test_a_driver_that_was_replaced_while_it_runs_wants_a_reboot_and_is_not_called_good(
    on: On, converge: Converge
) -> None:
    replace = "sed -i s/{}/{}/ /proc/driver/nvidia/version"
    on("vendor", "sh", "-c", replace.format("580.95.05", "570.86.15"))
    try:
        answer = converge("--skip-tags=reboot", only="vendor")
        assert "the NVIDIA driver 570.86.15 runs, and its library is 580.95.05" in answer.stderr, (
            answer.stderr
        )
        reason = on("vendor", "cat", "/run/deploy/reboot/nvidia_driver").stdout
        assert reason == "the NVIDIA driver 570.86.15 runs, and 580.95.05 is installed\n"
    finally:
        on("vendor", "sh", "-c", replace.format("570.86.15", "580.95.05"))
    assert converge(only="vendor").returncode == 0
    wait_for(on, "idle")


def wait_for(on: On, state: str) -> None:
    """Until Slurm says that of the node, or of its job."""
    deadline = time.monotonic() + 60
    ask = (
        ("squeue", "--noheader", "--format=%T") if state.isupper() else ("sinfo", "--noheader", "--format=%T")
    )
    while (seen := on("vendor", *ask).stdout.strip()) != state:
        assert time.monotonic() < deadline, seen
        time.sleep(0.5)


def test_other_options_of_the_module_want_a_reboot_of_the_drained_node(on: On, converge: Converge) -> None:
    """What a reboot would do is done by hand."""
    place, reason = "/etc/modprobe.d/deploy-nvidia.conf", "/run/deploy/reboot/nvidia_options"
    answer = converge("--skip-tags=reboot", only="vendor", wishes={"options": {}})
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert on("vendor", "cat", reason).stdout == (
        "the kernel module nvidia was loaded with other options (NVreg_RestrictProfilingToAdminUsers)\n"
    )
    assert "options nvidia" not in on("vendor", "cat", place).stdout
    wait_for(on, "drained")
    answer = converge("--skip-tags=reboot", only="vendor", wishes={"options": {}})
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert on("vendor", "test", "-e", reason, check=False).returncode == 0, "a run that was cut off"
    on("vendor", "rm", reason)
    answer = converge(only="vendor", wishes={"options": {}})
    assert answer.returncode == 0, answer.stdout + answer.stderr
    wait_for(on, "idle")
    on("vendor", "sh", "-c", f"echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 >> {place}")
    assert "changed=0" in converge(only="vendor").stdout


def test_a_driver_is_replaced_when_the_jobs_of_its_node_have_ended(on: On, converge: Converge) -> None:
    """The last on this machine: it leaves another branch. What a reboot would do is done by hand."""
    job = on("vendor", "sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--wrap=sleep 600")
    wait_for(on, "RUNNING")
    answer = converge("--skip-tags=reboot", only="vendor", wishes={"branch": "590"}, patience=0)
    assert answer.returncode == 2, answer.stdout
    assert f"jobs still run there: {job.stdout.strip()} (root)" in answer.stderr, answer.stderr
    assert version(on, "vendor", "nvidia-driver-cuda") == "580.95.05-1"
    assert version(on, "vendor", "nvidia-kernel-open-dkms") == "580.95.05-1"
    wait_for(on, "draining")
    on("vendor", "scancel", job.stdout.strip())
    wait_for(on, "drained")
    answer = converge("--skip-tags=reboot", only="vendor", wishes={"branch": "590"})
    assert "the NVIDIA driver 580.95.05 runs, and its library is 590.44.01" in answer.stderr, answer.stderr
    assert version(on, "vendor", "nvidia-driver-cuda") == "590.44.01-1"
    wait_for(on, "drained")
    on("vendor", "sed", "-i", "s/580.95.05/590.44.01/", "/proc/driver/nvidia/version")
    answer = converge(only="vendor", wishes={"branch": "590"})
    assert answer.returncode == 0, answer.stdout + answer.stderr
    wait_for(on, "idle")
    # This package's unit has no such flag.
    assert on("vendor", "test", "-e", DROP_IN, check=False).returncode == 1
    assert arguments(on, "nvidia-persistenced")[1:] == ["infinity", ""]


def test_dkms_built_the_modules_of_the_version_for_the_kernel_with_headers(on: On) -> None:
    driver = version(on, "bookworm", "libcuda1").partition("-")[0]
    kernel = on("bookworm", "ls", "/lib/modules").stdout.strip()
    assert on("bookworm", "dkms", "status").stdout == (
        f"nvidia-current/{driver}, {kernel}, x86_64: installed\n"
    )
    file = f"/lib/modules/{kernel}/updates/dkms/nvidia-current.ko"
    assert on("bookworm", "modinfo", "--field", "version", file).stdout == f"{driver}\n"
    assert on("bookworm", "modinfo", "--field", "vermagic", file).stdout.startswith(f"{kernel} ")


def test_modules_for_another_kernel_are_not_loaded(on: On) -> None:
    assert on("bookworm", "test", "-e", "/proc/driver/nvidia", check=False).returncode == 1
    assert on("bookworm", "systemctl", "is-active", "nvidia-persistenced", check=False).stdout == "inactive\n"


@pytest.mark.parametrize(
    ("kernel", "hint"),
    [("", "upgrade the kernel and boot it"), ("6.0.0-none-amd64", "name another in nvidia_driver_kernel")],
)
def test_a_kernel_without_headers_is_noticed_before_anything_is_installed(
    on: On, converge: Converge, kernel: str, hint: str
) -> None:
    answer = converge(only="trixie", wishes={"kernel_modules": "auto", "kernel": kernel})
    assert f"so the driver cannot be built for that kernel: {hint}" in answer.stderr, answer.stderr
    assert "dkms" not in on("trixie", "dpkg-query", "--show", "--showformat=${Package}\n").stdout


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"branch": "515"}, "Hopper needs branch 525 or later, and 515 is to be installed"),
        ({"source": "distribution"}, "Debian has no Fabric Manager"),
    ],
)
def test_what_cannot_work_is_refused(converge: Converge, wishes: dict[str, str], reason: str) -> None:
    answer = converge(only="vendor", wishes=wishes)
    assert answer.returncode == 2
    assert reason in re.sub(r"\s+", " ", answer.stderr), answer.stderr


def test_a_driver_that_no_package_brought_stays(on: On, converge: Converge) -> None:
    library = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.999.1"
    on("trixie", "touch", library)
    try:
        answer = converge(only="trixie", wishes={"source": "distribution"})
        assert "a driver is installed that no package brought" in answer.stderr
    finally:
        on("trixie", "rm", library)


def test_a_machine_without_gpus_gets_nothing(on: On, converge: Converge) -> None:
    on("bookworm", "mount", "-t", "tmpfs", "tmpfs", "/sys/bus/pci/devices")
    on("bookworm", "rm", "/etc/modprobe.d/deploy-nvidia.conf")
    try:
        answer = converge(only="bookworm")
        assert "changed=0" in answer.stdout
        assert on("bookworm", "test", "-e", "/etc/modprobe.d/deploy-nvidia.conf", check=False).returncode == 1
    finally:
        on("bookworm", "umount", "/sys/bus/pci/devices")


def test_modules_that_do_not_compile_are_taken_off_again(on: On, converge: Converge) -> None:
    """The last on this machine, which it leaves without kernel modules."""
    on("bookworm", "apt-get", "remove", "--yes", "nvidia-kernel-dkms")
    on(
        "bookworm",
        "sh",
        "-c",
        "echo 'MAKE[0]=\"echo nv.c:7:1: error: no such thing; false\"' >> /etc/dkms/nvidia-current.conf",
    )
    answer = converge(only="bookworm")
    kernel = on("bookworm", "ls", "/lib/modules").stdout.strip()
    assert f"do not compile for the kernel {kernel} (/var/log/deploy-nvidia-dkms.log)" in answer.stderr
    assert "nv.c:7:1: error: no such thing" in answer.stderr
    assert "nvidia_driver_source: nvidia" in answer.stderr
    assert on("bookworm", "dpkg", "--audit").stdout == ""
    assert "ii" not in on("bookworm", "sh", "-c", "dpkg --list nvidia-kernel-dkms | tail -1").stdout
