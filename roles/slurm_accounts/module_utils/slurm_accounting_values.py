"""The options of QOS, accounts and users that sacctmgr knows, and one spelling for each of their values.

Slurm prints a value differently from how it may be written (24:00:00 is 1-00:00:00, mem=1536M is mem=1.50G).
Both sides are brought to the same spelling here, so that only real differences are changes.
"""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_QUANTITY = re.compile(r"^(\d+(?:\.\d+)?)([KMGTP]?)B?$", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"^(?:(?P<days>\d+)-)?(?P<rest>\d+(?::\d+){0,2})$", re.ASCII)
_A_TIME = "a time: minutes, hours:minutes:seconds or days-hours:minutes:seconds"
_A_RESOURCE = "a resource: name=amount, as in cpu=4,mem=8G,gres/gpu=2"
_ONCE = "a list that names each resource once"
_AN_AMOUNT = "an amount: a number, and perhaps K, M, G, T or P behind it"
_A_DESCRIPTION = "a description: one line without '|'"


class SpellingError(ValueError):
    """A value that Slurm could not read."""

    def __init__(self, text: str, expected: str) -> None:
        """With what would be right."""
        super().__init__(f"{text!r} is not {expected}")


def integer(text: str) -> str:
    """A whole number."""
    return str(int(text))


def decimal(text: str) -> str:
    """A number with the six digits that Slurm prints."""
    return f"{float(text):.6f}"


def names(text: str) -> str:
    """A set of names; Slurm keeps them in lower case and in an order of its own."""
    return ",".join(sorted({name.strip().lower() for name in text.split(",") if name.strip()}))


def flags(text: str) -> str:
    """A set of flags, which Slurm knows in any case and prints in its own."""
    return names(text)


def word(text: str) -> str:
    """One word that Slurm knows in any case."""
    return text.lower()


def prose(text: str) -> str:
    """A description the way the database keeps it."""
    if re.search(r"[|\n]", text):
        raise SpellingError(text, _A_DESCRIPTION)
    return re.sub("[\"']", "`", text).lower()


def seconds(text: str, unit: int = 1) -> int:
    """A time limit in Slurm's notation in seconds; a bare number counts the given unit."""
    match = _TIME.match(text)
    if not match:
        raise SpellingError(text, _A_TIME)
    parts = [int(part) for part in match["rest"].split(":")]
    if match["days"] is not None:
        hours, minutes, rest = (*parts, 0, 0)[:3]
        return ((int(match["days"]) * 24 + hours) * 60 + minutes) * 60 + rest
    if len(parts) == 1:
        return parts[0] * unit
    hours, minutes, rest = (0, *parts)[-3:]
    return (hours * 60 + minutes) * 60 + rest


def clock(total: int) -> str:
    """Seconds as Slurm prints a time limit."""
    days, rest = divmod(total, 86400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def limit(text: str) -> str:
    """A time limit, which Slurm keeps in whole minutes."""
    return "" if text.upper() == "UNLIMITED" else clock(math.ceil(seconds(text, 60) / 60) * 60)


def duration(text: str) -> str:
    """A time that Slurm keeps in seconds and reads, when it is a bare number, in minutes."""
    return clock(seconds(text, 60))


def grace(text: str) -> str:
    """A time that sacctmgr takes in seconds only and prints as a clock."""
    return str(seconds(text))


def tres(text: str) -> str:
    """Trackable resources: name=amount pairs sorted by name, memory in MiB; -1 is no limit."""
    amounts: dict[str, str] = {}
    named: set[str] = set()
    for pair in text.split(","):
        name, equals, amount = pair.strip().partition("=")
        if not equals or not name:
            raise SpellingError(pair.strip(), _A_RESOURCE)
        if name.lower() in named:
            raise SpellingError(text, _ONCE)
        named.add(name.lower())
        if amount != "-1":
            amounts[name.lower()] = _amount(name.lower(), amount)
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))


def _amount(name: str, text: str) -> str:
    match = _QUANTITY.match(text)
    if not match:
        raise SpellingError(f"{name}={text}", _AN_AMOUNT)
    number, unit = float(match[1]), match[2].upper()
    if name == "mem":
        return f"{round(number * 1024 ** (_UNITS[unit or 'M'] - 2))}M"
    return str(round(number * 1024 ** _UNITS[unit]))


class Field(NamedTuple):
    """One option: its name here, its sacctmgr keyword, how its values are spelled, and what unset means."""

    option: str
    keyword: str
    spell: Callable[[str], str]
    unset: str = ""
    reset: str = "-1"

    def read(self, value: Any) -> str:  # noqa: ANN401 - as YAML gives it
        """The one spelling of a declared value; a ValueError when Slurm could not read it."""
        text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value).strip()
        return self.unset if text in {"", "-1"} else self.spell(text)

    def heard(self, text: str) -> str:
        """The one spelling of what sacctmgr printed; what has none is a difference, not a mistake."""
        try:
            return self.read(text)
        except ValueError:
            return text

    def word(self, wanted: str, present: str = "") -> str:
        """The argument of sacctmgr that sets the option; resources no longer limited are reset by name."""
        if self.spell is tres:
            kept = {pair.split("=")[0] for pair in wanted.split(",")}
            gone = [pair.split("=")[0] for pair in present.split(",") if pair]
            pairs = [wanted] if wanted else []
            return f"{self.keyword}=" + ",".join(pairs + [f"{name}=-1" for name in gone if name not in kept])
        return f"{self.keyword}={wanted or self.reset}"

    @property
    def is_time(self) -> bool:
        """Whether YAML may have read it as a number: 24:00:00 without quotes is 86400."""
        return self.spell in {limit, duration, grace}


def _limits(spell: Callable[[str], str], *pairs: tuple[str, str]) -> list[Field]:
    return [Field(option, keyword, spell) for option, keyword in pairs]


_GROUP_LIMITS = [
    *_limits(
        integer,
        ("grp_jobs", "GrpJobs"),
        ("grp_jobs_accrue", "GrpJobsAccrue"),
        ("grp_submit_jobs", "GrpSubmitJobs"),
        ("min_prio_threshold", "MinPrioThreshold"),
    ),
    *_limits(
        tres,
        ("grp_tres", "GrpTRES"),
        ("grp_tres_mins", "GrpTRESMins"),
        ("grp_tres_run_mins", "GrpTRESRunMins"),
        ("max_tres", "MaxTRES"),
        ("max_tres_per_node", "MaxTRESPerNode"),
        ("max_tres_mins", "MaxTRESMins"),
    ),
    *_limits(limit, ("grp_wall", "GrpWall"), ("max_wall", "MaxWall")),
]

ASSOCIATION: list[Field] = [
    Field("fairshare", "Fairshare", word, unset="1"),
    Field("priority", "Priority", integer),
    *_GROUP_LIMITS,
    *_limits(
        integer,
        ("max_jobs", "MaxJobs"),
        ("max_jobs_accrue", "MaxJobsAccrue"),
        ("max_submit_jobs", "MaxSubmitJobs"),
    ),
    Field("qos", "QOS", names, reset=""),
    Field("default_qos", "DefaultQOS", word),
]
"""What an account and a user's membership in one can be given."""

ACCOUNT: list[Field] = [
    Field("organization", "Organization", prose, reset=""),
    Field("description", "Description", prose, reset=""),
]

MANAGERS = Field("managers", "Coordinators", names)
"""Who is a coordinator of an account; sacctmgr has commands of their own for them."""

ADMIN_LEVEL = Field("admin_level", "AdminLevel", word, unset="none")

DEFAULT_ACCOUNT = Field("default_account", "DefaultAccount", word)

USER: list[Field] = [ADMIN_LEVEL, DEFAULT_ACCOUNT]

QOS: list[Field] = [
    Field("priority", "Priority", integer, unset="0"),
    Field("flags", "Flags", flags),
    Field("grace_time", "GraceTime", grace, unset="0"),
    *_GROUP_LIMITS,
    *_limits(
        integer,
        ("max_jobs_pa", "MaxJobsPA"),
        ("max_jobs_pu", "MaxJobsPU"),
        ("max_jobs_accrue_pa", "MaxJobsAccruePA"),
        ("max_jobs_accrue_pu", "MaxJobsAccruePU"),
        ("max_submit_jobs_pa", "MaxSubmitJobsPA"),
        ("max_submit_jobs_pu", "MaxSubmitJobsPU"),
    ),
    *_limits(
        tres,
        ("max_tres_pa", "MaxTRESPA"),
        ("max_tres_pu", "MaxTRESPU"),
        ("max_tres_run_mins_pa", "MaxTRESRunMinsPA"),
        ("max_tres_run_mins_pu", "MaxTRESRunMinsPU"),
        ("min_tres", "MinTRES"),
    ),
    Field("preempt", "Preempt", names, reset=""),
    Field("preempt_mode", "PreemptMode", names, unset="cluster", reset="cluster"),
    Field("preempt_exempt_time", "PreemptExemptTime", duration),
    Field("usage_factor", "UsageFactor", decimal, unset="1.000000"),
    Field("limit_factor", "LimitFactor", decimal),
    Field("usage_threshold", "UsageThreshold", decimal),
    Field("description", "Description", prose, reset=""),
]
