from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

peer_memory = load_module("roles/rdma/library/peer_memory.py")


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ([], False),
        (["sys/class/infiniband"], False),
        (["sys/class/infiniband/mlx5_0"], False),
        (["proc/driver/nvidia/version"], False),
        (["sys/class/infiniband/mlx5_0", "proc/driver/nvidia/version"], True),
    ],
)
def test_it_is_wanted_where_a_machine_has_both(tmp_path: Path, *, there: list[str], expected: bool) -> None:
    for name in there:
        (tmp_path / name).mkdir(parents=True)
    assert peer_memory.is_wanted(tmp_path) is expected
