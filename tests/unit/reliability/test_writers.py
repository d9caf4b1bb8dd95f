"""Who wrote when another one had begun is found."""

from tests.reliability.writers import Write, returned, terms


def _writes(*who: tuple[str, int]) -> list[Write]:
    return [Write(float(when), host, process, f"file{when}") for when, (host, process) in enumerate(who)]


def test_one_after_the_other_is_no_fault() -> None:
    writes = _writes(("ctl1", 1), ("ctl1", 1), ("ctl2", 2), ("ctl2", 2), ("ctl1", 3))
    assert returned(writes) == []
    assert terms(writes) == [("ctl1", 0, 1), ("ctl2", 2, 3), ("ctl1", 4, 4)]


def test_a_process_that_writes_on_is() -> None:
    assert returned(_writes(("ctl1", 1), ("ctl2", 2), ("ctl1", 1), ("ctl2", 2))) == ["file2", "file3"]
    assert returned(_writes(("ctl1", 1), ("ctl2", 2), ("ctl1", 1))) == ["file2"]


def test_a_process_that_its_own_host_follows_up_may_write_until_that_leads() -> None:
    assert returned(_writes(("ctl1", 1), ("ctl1", 3), ("ctl1", 1), ("ctl1", 3))) == []
    assert returned(_writes(("ctl1", 1), ("ctl1", 3), ("ctl2", 2), ("ctl1", 1))) == ["file3"]
    assert returned(_writes(("ctl1", 3), ("ctl2", 2), ("ctl1", 3))) == ["file2"]
