"""What nvbandwidth and DCGM's diagnostics print, as values."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_WAIVED = "waived"
_STATUSES = {"pass": "pass", "fail": "fail", "warn": "warn", "warning": "warn", "error": "fail"}


def _document(text: str) -> dict[str, Any]:
    """The JSON object among what else a program printed; an empty one where there is none."""
    begin = text.find("{")
    while begin >= 0:
        try:
            found, _ = json.JSONDecoder().raw_decode(text[begin:])
        except ValueError:
            begin = text.find("{", begin + 1)
            continue
        return found if isinstance(found, dict) else {}
    return {}


def nvbandwidth(text: str) -> dict[str, Any]:
    """``copies`` in GB/s by test and GPU (``1<>0`` between two), and what is ``wrong``."""
    document = _document(text).get("nvbandwidth") or {}
    wrong = [str(document["error"])] if document.get("error") else []
    copies: dict[str, dict[str, float]] = {}
    for test in document.get("testcases") or []:
        name, status = str(test.get("name")), str(test.get("status", "")).lower()
        if status != "passed":
            wrong += [] if status == _WAIVED else [f"{name}: {status or 'no status'}"]
            continue
        copies[name] = dict(_cells(test.get("bandwidth_matrix") or []))
    return {"copies": {name: row for name, row in copies.items() if row}, "wrong": wrong}


def _cells(matrix: list[list[str]]) -> Iterator[tuple[str, float]]:
    for row, cells in enumerate(matrix):
        for column, cell in enumerate(cells):
            try:
                figure = float(cell)
            except ValueError:
                continue  # N/A: a GPU and itself.
            if len(matrix) == 1:
                yield str(column), figure
            elif row != column:
                yield f"{row}<>{column}", figure


@dataclass(frozen=True)
class Diagnosis:
    """One result of DCGM's diagnostics: ``pass``, ``fail``, ``warn`` or ``skip``."""

    test: str
    gpu: str
    status: str
    why: str


def dcgm(text: str) -> list[Diagnosis]:
    """The results of ``dcgmi diag -j``, of DCGM 3 and 4."""
    document = _document(text)
    found = document.get("DCGM Diagnostic") or document.get("DCGM GPU Diagnostic") or {}
    results = []
    if found.get("runtime_error"):
        results.append(Diagnosis("diagnostics", "", "fail", str(found["runtime_error"])))
    for category in found.get("test_categories") or []:
        # Where a test had nothing to say, DCGM 3 says null.
        for test in filter(None, category.get("tests") or []):
            results += [
                _diagnosis(str(test["name"]), result) for result in filter(None, test.get("results") or [])
            ]
    return results


def _diagnosis(test: str, result: dict[str, Any]) -> Diagnosis:
    gpu = result.get("entity_id", result.get("gpu_ids", result.get("gpu_id", "")))
    warnings = result.get("warnings") or []
    words = [str(one["warning"] if isinstance(one, dict) else one) for one in warnings]
    status = _STATUSES.get(str(result.get("status", "")).lower(), "skip")
    return Diagnosis(test, str(gpu), status, "; ".join(words))
