"""What a check has to say of a machine."""

from __future__ import annotations


def error(reference: str, message: str, hint: str) -> dict[str, str]:
    """Something that must be fixed before anything is changed."""
    return {"severity": "error", "reference": reference, "message": message, "hint": hint}


def warning(reference: str, message: str, hint: str) -> dict[str, str]:
    """Something that an admin should know of, and that a run can live with."""
    return {"severity": "warning", "reference": reference, "message": message, "hint": hint}
