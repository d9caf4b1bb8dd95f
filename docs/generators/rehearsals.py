"""docs/rehearsals: for each example site a table of what its users type and what came of it.

Made from SITE.json there, which ``deploy rehearse --json`` wrote.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_INTRODUCTION = """\
# Rehearsed example sites

What `deploy rehearse` found of the sites in `inventory/sites`, on containers with simulated GPUs.
Made by `docs/generate.py`.

| Site | Rehearsed | On | Users' commands | Checks |
|---|---|---|---|---|
"""
_MOST_LINES = 12
_PIPE = "&#124;"
_CHECKED = ("failed", "passed", "not measured", "not applicable")


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The page of each site that was rehearsed."""
    paths = sorted((root / "docs" / "rehearsals").glob("*.json"))
    results = {path: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    for path, result in results.items():
        yield path.with_suffix(".md"), _page(path.stem, result)
    rows = "".join(_site(path.stem, result) for path, result in results.items())
    yield root / "docs" / "rehearsals" / "README.md", _INTRODUCTION + rows


def _site(site: str, result: Mapping[str, Any]) -> str:
    system = f"{result['system']}, {result['slurm']}"
    said = f"[{site}]({site}.md)", result["at"][:10], system, _commands(result), _checks(result["validation"])
    return f"| {' | '.join(said)} |\n"


def _page(site: str, result: Mapping[str, Any]) -> str:
    return "\n".join(
        [
            f"# {site}: what its users type\n",
            f"Made by `docs/generate.py` from `{site}.json`, the result of",
            f"`deploy rehearse inventory/sites/{site}/inventory.ini` on {result['at'][:10]}:",
            f"containers with {result['system']} and {result['slurm']}, simulated GPUs.",
            f"{len(result['commands'])} commands: {_commands(result)}.",
            _validation(result["validation"]),
            "",
            "| Command | Typed | Expected | Seen, or why not |",
            "|---|---|---|---|",
            *(_row(command) for command in result["commands"]),
            "",
        ]
    )


def _commands(result: Mapping[str, Any]) -> str:
    """How many commands came out how."""
    counts = {kind: sum(command["verdict"] == kind for command in result["commands"]) for kind in _SEEN}
    return ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)


def _checks(found: Mapping[str, Any]) -> str:
    """How many checks of the quick validation came out how."""
    outcomes = [check["outcome"] for check in found["checks"]]
    return ", ".join(f"{number} {kind}" for kind in _CHECKED if (number := outcomes.count(kind)))


def _validation(found: Mapping[str, Any]) -> str:
    """What the quick validation came to, in a line."""
    names = ", ".join(f"`{check['check']}`" for check in found["checks"] if check["outcome"] == "failed")
    return f"Validated before that: {_checks(found)}{f'; what failed: {names}' if names else ''}."


def _row(command: Mapping[str, Any]) -> str:
    lines = command["run"].strip().splitlines()
    shown = [*lines[:_MOST_LINES], *["…"] * (len(lines) > _MOST_LINES)]
    typed = "<br>".join(_code(line) for line in shown if line.strip())
    expected = "<br>".join(_code(part) for part in command["expected"])
    return f"| {command['id']} | {typed} | {expected} | {_SEEN[command['verdict']](command)} |"


def _code(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", _PIPE)
    return f"<code>{escaped}</code>"


def _as_expected(command: Mapping[str, Any]) -> str:
    states = sorted(set(command["jobs"].values()))
    jobs = (
        [f"{len(command['jobs'])} job{'s' * (len(command['jobs']) != 1)} {', '.join(states)}"]
        if states
        else []
    )
    here = [f"here: {words}".replace("|", _PIPE) for words in command.get("here", ())]
    return "; ".join(["as expected", f"exit {command['exit']}", *jobs, *here])


def _different(command: Mapping[str, Any]) -> str:
    return "**different**: " + _code("; ".join(command["why"]))


def _left_out(command: Mapping[str, Any]) -> str:
    return "left out: " + "; ".join(command["why"]).replace("|", _PIPE)


_SEEN = {"as expected": _as_expected, "different": _different, "left out": _left_out}
