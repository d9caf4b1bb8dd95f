"""What `make reliability`, `make kills` and `make power` share: a seed, a place, figures that are kept."""

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.durable import replace_file
from deploy.lab.state import need_lab
from tests.bench import machine
from tests.cluster.lab_cluster import Cluster
from tests.command_line import say

Parts = Mapping[str, Mapping[str, Any]]
_INTERRUPTED = 130


@dataclass(frozen=True)
class Program:
    """One of them; ``kinds`` has what its rounds do, by their names and in the order of the table."""

    name: str
    kinds: Mapping[str, str]
    labs: str
    """The machines that it makes, and what runs there."""
    head: Sequence[str]
    table: Callable[[Parts], Iterable[Sequence[str]]]
    is_bad: Callable[[Mapping[str, Any]], bool]
    """Whether a round found a fault."""
    code: Sequence[str] = ()
    """Files and directories that decide what a round comes to: rounds add up where these are the same."""


@dataclass
class Campaign:
    """All rounds; what is known is kept after each, should a later one not end."""

    program: Program
    seed: int
    place: Path
    """For files of its own; gone afterwards."""
    file: Path | None
    adds: bool = False
    """Whether its rounds stand beside those that the file has of the same kind and the same code."""
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    _description: Mapping[str, str] = field(init=False)
    _earlier: Parts = field(init=False)
    """What the file had before, where it counts with what comes."""

    def __post_init__(self) -> None:
        self._description = {
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
            **machine.describe(),
            "labs": f"{self.program.labs}; seed {self.seed}",
            **({"code": digest_of(self.program.code)} if self.program.code else {}),
        }
        earlier = _in(self.file) if self.adds else {}
        code = self._description.get("code")
        self._earlier = {kind: part for kind, part in earlier.items() if part.get("code") == code}
        if others := earlier.keys() - self._earlier.keys():
            say(f"of other code, so that new rounds take their place: {', '.join(sorted(others))}")

    def keep(self, kind: str, figures: Mapping[str, Any]) -> None:
        """Keeps what came of a round."""
        what = self.program.kinds[kind]
        part = self.parts.setdefault(kind, {"what": what, **self._description, "rounds": []})
        part["rounds"].append(dict(figures))
        if self.file:
            update(self.file, {kind: self._with_earlier(kind) for kind in self.parts}, [*self.program.kinds])

    def _with_earlier(self, kind: str) -> Mapping[str, Any]:
        part, earlier = self.parts[kind], self._earlier.get(kind)
        if not earlier or earlier["what"] != part["what"]:
            return part
        before = {key: earlier[key] for key in self._description if key in earlier}
        before["rounds"] = len(earlier["rounds"]) - sum(one["rounds"] for one in earlier.get("before", ()))
        return {
            **part,
            "rounds": [*earlier["rounds"], *part["rounds"]],
            "before": [*earlier.get("before", ()), before],
        }

    @property
    def found_faults(self) -> bool:
        """Whether any round did."""
        return any(self.program.is_bad(one) for part in self.parts.values() for one in part["rounds"])


def chance_of(seed: int, *what: object) -> random.Random:
    """What decides over a round, to be had again by the seed and what the round is called."""
    return random.Random(" ".join(map(str, (seed, *what))))  # noqa: S311 - no secret


def digest_of(paths: Iterable[str], root: Path = Path(__file__).parents[1]) -> str:
    """What files and directories of the project hold, but for what is written about them."""
    found = hashlib.sha256()
    for file in sorted(file for path in paths for file in _files(root / path)):
        found.update(f"{os.path.relpath(file, root)}\0".encode() + file.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def _files(path: Path) -> Iterable[Path]:
    below = [path] if path.is_file() else path.rglob("*")
    return [one for one in below if one.is_file() and one.suffix not in {".md", ".pyc"}]


def update(file: Path, parts: Parts, order: Sequence[str]) -> None:
    """Puts parts into a file, and leaves the others there; in the order of the table."""
    all_of_them = {**_in(file), **parts}
    ordered = {key: all_of_them[key] for key in order if key in all_of_them}
    # Whole, whatever comes in between: hours may be in it.
    replace_file(file, json.dumps(ordered, indent=1) + "\n", 0o644)


def _in(file: Path | None) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file and file.exists() else {}


def options_of(program: Program) -> argparse.ArgumentParser:
    """The options that all of them have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.{program.name}", description=f"make {program.name}"
    )
    only = "this kind of round only; can be given several times"
    parser.add_argument("--only", action="append", choices=[*program.kinds], help=only)
    seed = "decides moments, durations and orders (by chance)"
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help=seed)
    lab = "a lab that stands, made as this program makes it; it is left there"
    parser.add_argument("--lab", metavar="NAME", help=lab)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here, too, by kind")
    adds = "with --json: beside the rounds that the file has of the same code, and not in their place"
    parser.add_argument("--add", action="store_true", help=adds)
    return parser


def fought(program: Program, options: argparse.Namespace, fight: Callable[[Campaign], None]) -> int:
    """Has it fight, prints the table, and says how it ended: 0 where no round found a fault."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up like Ctrl-C
    try:
        with tempfile.TemporaryDirectory(prefix=f"{program.name}-") as place:
            campaign = Campaign(program, options.seed, Path(place), options.json, options.add)
            # Its runs do not become the last run of the person who types this.
            os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp(dir=place))
            fight(campaign)
    except KeyboardInterrupt:
        say(f"{program.name}: interrupted; its machines {'stay' if options.lab else 'are gone'}")
        return _INTERRUPTED
    for line in (program.head, *program.table(campaign.parts)):
        sys.stdout.write(" | ".join(line) + "\n")
    return int(campaign.found_faults)


@contextmanager
def standing_or(
    lab: str | None, new: Callable[[], AbstractContextManager[Cluster]], machines: str = "containers"
) -> Iterator[Cluster]:
    """The lab of that name, which stays; without a name a new one, of which ``new`` is the context."""
    if lab:
        yield Cluster(lab, need_lab(lab).directory, "trixie", machines)
        return
    with new() as made:
        yield made
