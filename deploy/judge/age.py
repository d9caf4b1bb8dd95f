"""How long something has lasted, as a person says it."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def age(seconds: float) -> str:
    """One number and its unit, larger from two of the next on: ``90 s``, ``90 min``, ``40 h``, ``3 days``."""
    whole = max(0, round(seconds))
    for size, unit in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"
