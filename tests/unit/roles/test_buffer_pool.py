import pytest

from tests.unit.roles.loading import load_module

buffer_pool = load_module("roles/mariadb/filter_plugins/buffer_pool.py")


@pytest.mark.parametrize(
    ("memory", "pool"),
    [(512, 128), (900, 192), (1966, 448), (7950, 1984), (16384, 4096), (64000, 4096), (257000, 12800)],
)
def test_what_the_guide_shows_within_its_limits(memory: int, pool: int) -> None:
    assert buffer_pool.buffer_pool_mb(memory) == pool
    assert 0.04 < pool / memory <= 0.25
