import json
from pathlib import Path

import pytest

from deploy.validate.benchmark_text import Diagnosis, dcgm, nvbandwidth

WRITTEN = Path(__file__).parent / "written"


def test_the_copies_of_a_gpu() -> None:
    found = nvbandwidth((WRITTEN / "nvbandwidth.json").read_text())
    assert found["wrong"] == []
    assert found["copies"] == {
        "host_to_device_memcpy_ce": {"0": 54.1, "1": 53.9},
        "device_to_host_memcpy_ce": {"0": 50.2, "1": 50.0},
    }


def test_between_gpus_a_gpu_and_itself_does_not_count() -> None:
    matrix = [["N/A", "373.22"], ["372.05", "0.00"]]
    context = {"name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_matrix": matrix}
    waived = {"name": "other", "status": "Waived"}
    error = {"name": "third", "status": "Error"}
    found = nvbandwidth("words {\n" + json.dumps({"nvbandwidth": {"testcases": [context, waived, error]}}))
    assert found == {
        "copies": {"device_to_device_memcpy_read_ce": {"0<>1": 373.22, "1<>0": 372.05}},
        "wrong": ["third: error"],
    }


@pytest.mark.parametrize("text", ["", "{", "[]", "deploy-missing: nvbandwidth"])
def test_what_is_no_answer_has_no_copies(text: str) -> None:
    assert nvbandwidth(text) == {"copies": {}, "wrong": []}
    assert dcgm(text) == []


def test_an_error_of_nvbandwidth() -> None:
    assert nvbandwidth('{"nvbandwidth": {"error": "No devices found"}}')["wrong"] == ["No devices found"]


def test_diagnostics_of_dcgm_3_with_its_nulls() -> None:
    tests = [
        {"name": "Denylist", "results": [{"gpu_ids": "0,1,2,3", "status": "PASS"}]},
        None,
        {"name": "Inforom", "results": [{"gpu_ids": "0,1,2,3", "status": "FAIL", "warnings": ["bad"]}]},
    ]
    content = {"test_categories": [{"category": "Deployment", "tests": tests}], "version": "3.1.0"}
    assert dcgm("WARNING: x\n" + json.dumps({"DCGM GPU Diagnostic": content})) == [
        Diagnosis("Denylist", "0,1,2,3", "pass", ""),
        Diagnosis("Inforom", "0,1,2,3", "fail", "bad"),
    ]


def test_diagnostics_of_dcgm_4() -> None:
    warning = {"error_id": 29, "error_severity": 5, "warning": "Persistence mode for GPU 3 is disabled."}
    results = [
        {"entity_group": "GPU", "entity_id": 3, "status": "Fail", "warnings": [warning]},
        {"entity_group": "GPU", "entity_id": 4, "status": "Skip"},
    ]
    tests = [{"name": "software", "results": results, "test_summary": {"status": "Fail"}}]
    content = {"test_categories": [{"category": "Deployment", "tests": tests}]}
    assert dcgm(json.dumps({"DCGM Diagnostic": content})) == [
        Diagnosis("software", "3", "fail", "Persistence mode for GPU 3 is disabled."),
        Diagnosis("software", "4", "skip", ""),
    ]
    assert dcgm('{"DCGM Diagnostic": {"runtime_error": "no host engine"}}')[0].why == "no host engine"
