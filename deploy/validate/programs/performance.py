"""The jobs of a validation that measure: NCCL, nvbandwidth, DCGM, training, and the load of a burn-in.

Loaded by user.py, whose Validation runs the jobs. ``measured`` returns, by what was asked for::

    {"nccl": {kind: {"alone": {node: run}, "together": run, "nodes": [node], "pairs": {"a b": run}}},
     "nvbandwidth": {node: run}, "dcgm": {node: run}, "training": {"alone": {node: run}, "together": run, …},
     "burn_in": {"seconds", "nodes": {node: {"rounds": [answer], "jobs": [id], "waited"}}}}

A measurement has its node to itself: nodes on which users' jobs run refuse it, and are left alone.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MISSING = "deploy-missing"
LINK = "deploy-link:"
_WAIT_FOR_RESOURCES = 20
_SECONDS = 300
_PROGRAM_MINUTES = 9
_KEPT = 60_000
_NCCL = ("-b", "256M", "-e", "4G", "-f", "4", "-w", "5", "-n", "20", "-c", "1")
_NVBANDWIDTH = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce")
ROUND_SECONDS = 480
"""Jobs of the validation's partition may stay ten minutes, so a burn-in is many jobs, one after the other."""
_SHORTEST_ROUND = 10
_POLL = 3
_TO_SETTLE, _TO_BEGIN, _TO_END = 20, 60, 90
_RATE = re.compile(r"^(\d+(?:\.\d+)?)")
_RANK = re.compile(r"^#\s+Rank\s+(\d+)\s.*?\son\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.+?)\s*$")
_WRONG = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)\s+(\w+)")
_COLUMNS = 13
_BANDWIDTHS, _WRONGS = (7, 11), (8, 12)


def read_nccl(text: str) -> dict[str, Any]:
    """What all_reduce_perf printed: ranks with host and GPU, bus bandwidth of the largest size, wrong values.

    ``wrong`` is null when the program did not get as far as to say how many there were.
    """
    ranks: list[tuple[int, str, str]] = []
    wrong: int | None = None
    counted, bandwidth, largest = 0, 0.0, 0
    for line in text.splitlines():
        found = _RANK.match(line.strip())
        if found:
            ranks.append((int(found[1]), found[2], found[3]))
            continue
        total = _WRONG.match(line.strip())
        if total:
            wrong = (wrong or 0) + int(total[1]) + (total[2] != "OK" and not int(total[1]))
            continue
        words = line.split()
        if len(words) < _COLUMNS or not words[0].isdigit():
            continue
        try:
            best = max(float(words[place]) for place in _BANDWIDTHS)
        except ValueError:
            continue
        counted += sum(int(words[place]) for place in _WRONGS if words[place].isdigit())
        if int(words[0]) >= largest:
            largest, bandwidth = int(words[0]), best
    if wrong is not None:
        wrong = max(wrong, counted)
    return {"ranks": ranks, "bandwidth": bandwidth, "wrong": wrong, "links": _links(text)}


def _links(text: str) -> list[float]:
    """The rates in Gb/s of a node's ports to the fabric, as the wrapper printed them."""
    found = []
    for line in text.splitlines():
        _, mark, rest = line.partition(LINK)
        rate = _RATE.match(rest.strip()) if mark else None
        if rate:
            found.append(float(rate[1]))
    return found


def expected(
    table: list[dict[str, Any]], ports: dict[str, float], gpu: str, count: int, links: list[float] | None
) -> float | None:
    """The bus bandwidth in GB/s that the table promises; None when it promises nothing of the kind.

    ``links`` is None within a node. Between nodes an entry for just these ports counts first, then so much
    for every port, of which a GPU uses one.
    """
    fabric = "node" if links is None else fabric_of(links)
    for entry in table:
        if entry["fabric"] == fabric and re.search(entry["gpu"], gpu) and entry.get("gpus", count) == count:
            return float(entry["gb_per_s"])
    if not links:
        return None
    fastest = max(links)
    each = ports.get(f"{fastest:g}")
    return each * min(count, links.count(fastest)) if each else None


def fabric_of(links: list[float]) -> str:
    """The ports of a node in a word, as in 8x400; ``none`` without any."""
    return f"{links.count(max(links))}x{max(links):g}" if links else "none"


class Measurements:
    """The jobs that measure, on the nodes of one validation."""

    def __init__(self, validation: Any, fit: list[str]) -> None:  # noqa: ANN401 - user.py's Validation
        self.validation = validation
        self.asked: dict[str, Any] = validation.plan["performance"]
        kinds: dict[str, list[str]] = {}
        for node in fit:
            if node in validation.plan["gpus"]:
                kinds.setdefault(self.asked["gpu_kinds"][node], []).append(node)
        self.kinds = kinds
        self.fit = fit

    @property
    def gpu_nodes(self) -> list[str]:
        """The nodes with GPUs."""
        return [node for nodes in self.kinds.values() for node in nodes]

    def gpus(self, node: str) -> int:
        """How many GPUs a node has; none where it is not looked at for them."""
        return int(self.validation.plan["gpus"].get(node, 0))

    def job(
        self, tool: str, *options: str, arguments: list[str], seconds: float = _SECONDS
    ) -> dict[str, Any]:
        """Runs one of the tools as a job that has its nodes to itself."""
        given = [
            *self.validation.job_options(),
            *(f"--time={_PROGRAM_MINUTES}", f"--immediate={_WAIT_FOR_RESOURCES}", "--exclusive", "--mem=0"),
            *self.image(tool),
            *options,
        ]
        done = self.validation.run(["srun", *given, *self.command(tool, arguments)], seconds=seconds)
        return {**done, "said": done["said"][-_KEPT:]}

    def image(self, tool: str) -> list[str]:
        """The option that names a tool's container image, if it has one."""
        image = self.asked["tools"][tool].get("image")
        return [f"--container-image={image}"] if image else []

    def command(self, tool: str, arguments: list[str]) -> list[str]:
        """How a tool is started: in the shell that knows its modules; says so when it is not there.

        The first task on a node prints the rates of its ports to the fabric first.
        """
        described = self.asked["tools"][tool]
        look = (
            'if [ "${SLURM_LOCALID:-0}" = 0 ]; then for port in /sys/class/infiniband/*/ports/*; do '
            f'grep -qs ACTIVE "$port/state" && echo "{LINK} $(cat "$port/rate")"; done; fi; '
        )
        find = f'command -v "$0" >/dev/null 2>&1 || {{ echo "{MISSING}: $0"; exit 127; }}; exec "$0" "$@"'
        modules = described.get("modules") or []
        shell = ["bash", "-lc"] if modules else ["/bin/sh", "-c"]
        load = ""
        if modules:
            words = shlex.join(modules)
            load = f'module load {words} || {{ echo "{MISSING}: module {words}"; exit 127; }}; '
        return [*shell, f"{load}{look}{find}", described["command"], *arguments]

    def on_each(
        self, tool: str, nodes: list[str], arguments: list[str], seconds: float = _SECONDS
    ) -> dict[str, Any]:
        """One task on every node, with all its GPUs; on the first alone, if the tool is not there."""

        def alone(node: str) -> dict[str, Any]:
            options = ["--nodes=1", "--ntasks=1", f"--nodelist={node}"]
            if self.gpus(node):
                options.append(f"--gres=gpu:{self.gpus(node)}")
            given = [word.replace("{gpus}", str(self.gpus(node))) for word in arguments]
            return self.job(tool, *options, arguments=given, seconds=seconds)

        return self._scouted(nodes, alone)

    def _scouted(self, nodes: list[str], alone: Callable[[str], Any]) -> dict[str, Any]:
        first = self.validation.each(nodes[:1], alone)
        if any(run["code"] != 0 and MISSING in run["said"] for run in first.values()):
            return dict(first)
        return {**first, **self.validation.each(nodes[1:], alone)}

    def on_all(self, tool: str, nodes: list[str], tasks: int, arguments: list[str]) -> dict[str, Any]:
        """So many tasks on each of the nodes, in one job."""
        listed = self.validation.directory / f"nodes-{tool}-{threading.get_ident()}"
        listed.write_text("".join(f"{node}\n" for node in nodes), encoding="utf-8")
        options = [f"--nodes={len(nodes)}", f"--ntasks-per-node={tasks}", f"--nodefile={listed}"]
        if self.gpus(nodes[0]):
            options.append(f"--gres=gpu:{self.gpus(nodes[0])}")
        if tool == "nccl" and self.validation.plan["has_mpi"]:
            options.append("--mpi=pmix")
        return self.job(tool, *options, arguments=arguments, seconds=_SECONDS + len(nodes) / 10)

    def nccl(self) -> dict[str, Any]:
        """All-reduce in every node alone, then over all nodes of a kind, and in pairs when that is slow."""
        found = {}
        for kind, nodes in self.kinds.items():
            alone = self.on_each("nccl", nodes, [*_NCCL, "-g", "{gpus}"])
            good = [node for node, run in alone.items() if run["code"] == 0]
            answer: dict[str, Any] = {"alone": alone, "nodes": good}
            found[kind] = answer
            if len(good) > 1 and not self.validation.is_over.is_set():
                count = self.gpus(good[0])
                answer["together"] = self.on_all("nccl", good, count, [*_NCCL, "-g", "1"])
                if len(good) > 2 and self.is_short(answer["together"], count):  # noqa: PLR2004
                    answer["pairs"] = self.pairs(good, count)
        return found

    def is_short(self, run: dict[str, Any], count: int) -> bool:
        """Whether an all-reduce over several nodes failed, or was slower than promised."""
        read = read_nccl(run["said"])
        if run["code"] != 0 or not read["ranks"] or read["wrong"]:
            return True
        gpu = read["ranks"][0][2]
        promised = expected(
            self.asked["expected"], self.asked["ports"], gpu, count, fewest(read["links"], run)
        )
        return promised is not None and read["bandwidth"] < promised * self.asked["percent"] / 100

    def pairs(self, nodes: list[str], count: int) -> dict[str, Any]:
        """All-reduce between neighbours of a ring; no node is in two jobs at once."""
        found: dict[str, Any] = {}
        ring = [*zip(nodes, [*nodes[1:], nodes[0]])]  # noqa: B905 - Python 3.9
        for turn in turns(ring):
            names = {" ".join(pair): list(pair) for pair in turn}

            def between(name: str, names: dict[str, list[str]] = names) -> dict[str, Any]:
                return self.on_all("nccl", names[name], count, [*_NCCL, "-g", "1"])

            found.update(self.validation.each(list(names), between))
        return found

    def training(self) -> dict[str, Any]:
        """A few steps of training on every node alone, then on all nodes of a kind at once."""
        found: dict[str, Any] = {}
        kinds = self.kinds or {"": self.fit}
        for kind, nodes in kinds.items():
            count = self.gpus(nodes[0]) if nodes else 0
            tasks = count or 2
            arguments = ["-c", self.validation.plan["training"], json.dumps({"port": self.asked["port"]})]

            def alone(node: str, tasks: int = tasks, arguments: list[str] = arguments) -> dict[str, Any]:
                return self.on_all("python", [node], tasks, arguments)

            answer: dict[str, Any] = {"alone": self._scouted(nodes, alone), "tasks": tasks}
            good = [node for node, run in answer["alone"].items() if run["code"] == 0]
            if len(good) > 1 and not self.validation.is_over.is_set():
                answer["together"] = self.on_all("python", good, tasks, arguments)
            answer["nodes"] = good
            found[kind] = answer
        return found

    def burn_in(self) -> dict[str, Any]:
        """Load on every node that nobody uses, in rounds, until the time is over."""
        seconds = float(self.asked["burn_in_seconds"])
        began = time.time()
        deadline = began + seconds
        nodes: dict[str, dict[str, Any]] = {
            node: {"rounds": [], "jobs": [], "waited": 0} for node in self.validation.plan["nodes"]
        }
        # As Slurm calls a node that waits for the jobs of a reservation for maintenance.
        idle = "maint" if self.validation.plan.get("reservation") else "idle"
        turn, settled = 0, began + _TO_SETTLE
        while not self.validation.is_over.is_set() and (left := deadline - time.time()) >= _SHORTEST_ROUND:
            states = self.node_states()
            free = [node for node in nodes if states.get(node) == idle]
            # A round waits for the nodes that are about to be free, its own last ones among them.
            is_early = "completing" in states.values() and time.time() < settled
            if is_early or not free:
                self.validation.is_over.wait(_POLL)
                continue
            turn += 1
            self._round(turn, free, min(ROUND_SECONDS, left), nodes)
            settled = time.time() + _TO_SETTLE
        return {"seconds": seconds, "took": time.time() - began, "nodes": nodes}

    def node_states(self) -> dict[str, str]:
        """What Slurm says of every node in a word; nothing when it does not answer."""
        # A partition that is named is shown, hidden or not.
        argv = [
            "sinfo",
            "--Node",
            "--noheader",
            "--format=%N %T",
            f"--partition={self.validation.plan['partition']}",
        ]
        done = self.validation.run(argv, seconds=30)
        if done["code"] != 0:
            self.validation.trouble.append(f"sinfo: {done['said'].strip()}")
            return {}
        words = [line.split() for line in done["said"].splitlines()]
        return {line[0]: line[1] for line in words if len(line) == 2}  # noqa: PLR2004

    def _round(self, turn: int, free: list[str], seconds: float, nodes: dict[str, dict[str, Any]]) -> None:
        place = self.validation.directory
        jobs: dict[str, str] = {}
        for node in free:
            script = self._script(node, place / f"burn-{turn}-{node}", seconds)
            options = (f"--nodelist={node}", "--nodes=1", "--exclusive", "--mem=0", "--time=10")
            gres = [f"--gres=gpu:{self.gpus(node)}"] if self.gpus(node) else []
            job, why = self.validation.sbatch(*options, *gres, script=script)
            if job:
                jobs[job] = node
                nodes[node]["jobs"].append(job)
            else:
                self.validation.trouble.append(f"burn-in on {node}: {why}")
        waiting = self._wait(jobs, seconds)
        for job, node in jobs.items():
            if job in waiting:
                nodes[node]["waited"] += 1
                nodes[node]["jobs"].remove(job)
                continue
            try:
                text = (place / f"burn-{turn}-{node}").read_text(encoding="utf-8")
                nodes[node]["rounds"].append(json.loads(text))
            except (OSError, ValueError) as problem:
                nodes[node]["rounds"].append({"job": job, "lost": str(problem)})

    def _wait(self, jobs: dict[str, str], seconds: float) -> set[str]:
        """Waits for jobs to end; those that do not begin, because users' jobs came first, are cancelled."""
        began = time.time()
        waiting: set[str] = set()
        ends = began + seconds + _TO_BEGIN + _TO_END
        is_late = False
        while time.time() < ends and not self.validation.is_over.wait(2):
            argv = [
                "squeue",
                "--all",
                "--noheader",
                "--me",
                "--format=%i %T",
                f"--name={self.validation.marker}",
            ]
            done = self.validation.run(argv, seconds=30)
            if done["code"] != 0:
                continue
            states = dict(line.split()[:2] for line in done["said"].splitlines() if line.strip())
            left = {job: states[job] for job in jobs if job in states}
            if not left:
                return waiting
            if not is_late and time.time() - began > _TO_BEGIN:
                is_late = True
                waiting = {job for job, state in left.items() if state == "PENDING"}
                if waiting:
                    self.validation.run(["scancel", *sorted(waiting)], seconds=30)
        if jobs:
            self.validation.run(["scancel", *sorted(jobs)], seconds=30)
        return waiting

    def _script(self, node: str, answer: Any, seconds: float) -> str:  # noqa: ANN401 - a path
        """What a round of a burn-in runs on a node."""
        given = {
            "seconds": seconds,
            "answer": str(answer),
            "directory": f"{answer}.d",
            "memory_mb": self.asked["memory_mb"].get(node, 0),
            "gpus": self.gpus(node),
            "hpl": [self.command(f"hpl-{name}", []) for name in ("xhpl", "hpcc")],
            "python": self.command("python", ["-c", self.validation.plan["matmul"]]),
        }
        words = ["python3", "-I", "-c", self.validation.plan["load"], json.dumps(given)]
        return f"exec {shlex.join(words)}"


def turns(ring: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The pairs of a ring in two or three turns, in each of which no node is twice."""
    left = list(ring)
    while left:
        taken: set[str] = set()
        turn = []
        for pair in left:
            if not taken & {*pair}:
                taken |= {*pair}
                turn.append(pair)
        yield turn
        left = [pair for pair in left if pair not in turn]


def fewest(links: list[float], run: dict[str, Any]) -> list[float]:
    """The ports of one node: the first task of every node printed its own."""
    nodes = len({host for _, host, _ in read_nccl(run["said"])["ranks"]}) or 1
    fastest = max(links, default=0.0)
    return [fastest] * (links.count(fastest) // nodes)


def measured(validation: Any, fit: list[str]) -> dict[str, Any]:  # noqa: ANN401 - user.py's Validation
    """Everything that was asked for; the burn-in last."""
    measurements = Measurements(validation, fit)
    answer: dict[str, Any] = {}
    gpus = measurements.gpu_nodes
    if validation.has("nccl"):
        answer["nccl"] = measurements.nccl()
    if validation.has("nvbandwidth"):
        arguments = ["-j", "-t", *_NVBANDWIDTH]
        answer["nvbandwidth"] = measurements.on_each("nvbandwidth", gpus, arguments)
    if validation.has("dcgm"):
        answer["dcgm"] = measurements.on_each("dcgm", gpus, ["diag", "-r", "1", "-j"])
    if validation.has("training"):
        answer["training"] = measurements.training()
    if validation.has("burn-in"):
        answer["burn_in"] = measurements.burn_in()
    return answer
