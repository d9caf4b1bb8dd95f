import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/scratch/library/scratch_directory.py")
MOUNTS = [
    module.Mount("/dev/sda1", "/", "ext4"),
    module.Mount("10.0.0.1:/work", "/work", "nfs4"),
    module.Mount("/dev/nvme0n1", "/work/local", "xfs"),
]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/var/spool/scratch", ""),
        ("/work/local/jobs", ""),
        ("/work/jobs", "/work/jobs is on a network file system (nfs4, 10.0.0.1:/work)"),
        ("/tmp/jobs", "/tmp/jobs is inside of /tmp"),
        ("/tmp", "/tmp is inside of /tmp"),
        ("/tmpfs", ""),
    ],
)
def test_where_private_directories_may_lie(path: str, reason: str) -> None:
    said = module.problem(path, ["/tmp", "/dev/shm"], MOUNTS)
    assert said.startswith(reason)
    assert bool(said) is bool(reason)
