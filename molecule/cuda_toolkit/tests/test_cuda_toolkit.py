"""Users choose among versions of CUDA, and get the compiler and the libraries of the one they chose."""

import pytest

from molecule.conftest import Converge, On

# The package with the run-time library, which is small, and the version of it that the release has.
DEBIAN = {"bookworm": ("libcudart11.0", "11.8"), "trixie": ("libcudart12", "12.4")}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("module load cuda && nvcc --version && echo $CUDA_HOME", "release 12.6\n/usr/local/cuda-12.6\n"),
        (
            "module load cuda/12.4 && nvcc --version && echo $CUDA_HOME",
            "release 12.4\n/usr/local/cuda-12.4\n",
        ),
        ("module load cuda/12.4 && module swap cuda/12.6 && nvcc", "release 12.6\n"),
        ("module load cuda && module purge && type nvcc", ""),
    ],
)
def test_a_user_chooses(on: On, machine: str, typed: str, expected: str) -> None:
    answer = on(machine, "runuser", "-u", "nobody", "--", "bash", "--login", "-c", typed, check=False)
    assert answer.stdout == expected, answer.stderr


def test_a_library_is_of_its_version_though_there_is_a_later_one(on: On, machine: str) -> None:
    for package in ("libnccl2", "libnccl-dev"):
        shown = on(machine, "dpkg-query", "--show", "--showformat=${Version}", package).stdout
        assert shown == "2.21.5-1+cuda12.4"


def version_of(on: On, machine: str, package: str) -> str:
    shown = on(machine, "dpkg-query", "--show", "--showformat=${Version}", package, check=False)
    return shown.stdout if shown.returncode == 0 else ""


def test_packages_that_are_named_are_of_the_version_too(on: On, machine: str) -> None:
    assert version_of(on, machine, "libcudnn9-cuda-13") == "9.5.0.50-1"
    assert version_of(on, machine, "libcudnn9-dev-cuda-13") == "9.5.1.17-1", "it says its own"


@pytest.mark.parametrize(("versions", "series"), [(["13.0", "12.4"], "12"), (["13.0"], "13")])
def test_cudnn_is_for_a_cuda_that_is_listed(
    on: On, converge: Converge, versions: list[str], series: str
) -> None:
    machine, both = "bookworm", [f"libcudnn9{dev}-cuda-{series}" for dev in ("", "-dev")]
    on(machine, "apt-get", "purge", "--yes", "libcudnn9*")
    answer = converge(only=machine, versions=versions, further=[{"name": "cudnn", "version": "9.5.0"}])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [version_of(on, machine, package) for package in both] == ["9.5.0.50-1"] * 2
    other = {"12": "13", "13": "12"}[series]
    assert not version_of(on, machine, f"libcudnn9-cuda-{other}")


# What Slurm's commands say of a node, as far as the role asks.
SLURM = {
    "scontrol": """by='[root@2026-11-25T03:00:00]'
case "$*" in
*State=DRAIN*) touch /root/drained; echo drain >> /root/log ;;
*State=RESUME*) rm /root/drained; echo resume >> /root/log ;;
*) test -e /root/drained && echo "NodeName=n State=IDLE+DRAIN Reason=deploy: maintenance $by" ||
   echo "NodeName=n State=IDLE" ;;
esac""",
    "squeue": "cat /root/jobs",
    "sinfo": "true",
}


def test_a_library_is_replaced_when_the_jobs_of_its_node_have_ended(on: On, converge: Converge) -> None:
    machine, later = "trixie", "2.99.0-1+cuda12.9"

    def installed() -> str:
        return on(machine, "dpkg-query", "--show", "--showformat=${Version}", "libnccl2").stdout

    for name, text in SLURM.items():
        write = f"cat > /usr/local/bin/{name} && chmod 755 /usr/local/bin/{name}"
        on(machine, "sh", "-c", write, data=f"#!/bin/sh\n{text}\n")
    on(machine, "sh", "-c", "mkdir -p /etc/slurm; touch /etc/slurm/slurm.conf; echo 17 alice > /root/jobs")
    node = {"reboot_node": "n", "reboot_controller": "molecule-cuda-toolkit-trixie"}
    answer = converge(only=machine, nccl=later, reboot_wait_for_jobs_minutes=0, **node)
    assert "n is drained, and jobs still run there: 17 (alice)" in answer.stderr, answer.stdout
    assert installed() == "2.21.5-1+cuda12.4"
    on(machine, "truncate", "--size=0", "/root/jobs")
    answer = converge(only=machine, nccl=later, **node)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert installed() == later
    assert on(machine, "cat", "/root/log").stdout == "drain\nresume\n"
    on(machine, "rm", "/root/log")
    assert converge(only=machine, nccl=later, **node).returncode == 0
    assert on(machine, "test", "-e", "/root/log", check=False).returncode == 1, "nothing is replaced"


def test_a_distribution_has_one_version_and_no_other(on: On, converge: Converge, machine: str) -> None:
    package, version = DEBIAN[machine]
    answer = converge(only=machine, source="distribution", versions=["9.9"], parts=[package])
    assert f"no package source of this machine has {package} 9.9" in answer.stderr
    answer = converge(only=machine, source="distribution", versions=[version], parts=[package])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = on(machine, "sh", "-c", "ldconfig -p | grep libcudart.so").stdout
    assert "libcudart.so.1" in found
    installed = on(machine, "dpkg-query", "--show", "--showformat=${Version}", package).stdout
    assert installed.startswith(f"{version}.")
