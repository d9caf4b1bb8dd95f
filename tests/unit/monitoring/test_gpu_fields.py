"""What DCGM is asked for is what rules and dashboards read, and what the recording of its exporter has."""

import re
from pathlib import Path

import yaml

from deploy.content import roles
from deploy.monitoring.recording import GPU

RECORDED = Path(__file__).parent / "recorded/dcgm.prom"


def fields() -> set[str]:
    """The fields that the role gpu_exporter lists."""
    text = (roles() / "gpu_exporter/vars/main.yml").read_text(encoding="utf-8")
    return {field["name"] for field in yaml.safe_load(text)["__gpu_exporter_fields"]}


def test_every_field_that_is_read_is_asked_for() -> None:
    read = {name for recording in GPU for name in re.findall(r"DCGM_\w+", recording.expr)}
    assert len(read) > len(GPU) / 2
    assert read <= fields()


def test_the_recording_is_one_of_what_is_asked_for() -> None:
    told = set(re.findall(r"^(DCGM_\w+){", RECORDED.read_text(encoding="utf-8"), re.MULTILINE))
    assert told
    assert told <= fields()
