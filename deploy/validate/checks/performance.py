"""What the jobs that measure say of GPUs, of the links between them, and of training on them."""

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

from deploy.validate import benchmark_text
from deploy.validate.benchmarks import SOFTWARE
from deploy.validate.context import Context, Run, blamed, is_refused, last_line, without_jobs
from deploy.validate.outliers import lowest_usual
from deploy.validate.programs.performance import LINK, MISSING, expected, fabric_of, fewest, read_nccl
from deploy.validate.result import Result, failed, not_applicable, not_measured, passed

_FEW = 3
_APART = "the nodes were not free at the same time"
_PERCENT = 100
Judge = Callable[[Context], Iterator[Result]]


def measured(kind: str, *, needs_gpus: bool = True) -> Callable[[Judge], Judge]:
    """A check that says why it has nothing to say where nothing was measured."""

    def decorate(judge: Judge) -> Judge:
        def judged(context: Context) -> Iterator[Result]:
            plan = context.questions.plan or {}
            if plan and needs_gpus and not plan["gpus"]:
                divided = bool(plan.get("divided"))
                yield (
                    not_measured("GPUs are divided (MIG)") if divided else not_applicable("no node has GPUs")
                )
            elif context.jobs is None:
                yield without_jobs(context)
            elif kind not in plan.get("kinds", (kind,)):
                yield not_measured("takes more than a minute; left out by --quick")
            elif not context.runs(kind):
                yield not_measured("no node could take a job")
            else:
                yield from judge(context)

        judged.__doc__ = judge.__doc__
        return judged

    return decorate


def _unmeasured(context: Context, tool: str, node: str, run: Run) -> Result | None:
    """Why a job measured nothing on a node; None when it ran."""
    if context.is_taken(node, run):
        return not_measured("its resources belong to jobs of users at the moment", node)
    if run["code"] != 0 and MISSING in run["said"]:
        return not_applicable(f"{node} has no {_what_is_missing(run)}: install {SOFTWARE[tool]}, or {_SAY}")
    return None


_SAY = "say in validation.yml where it is (docs/validation.md)"


def _what_is_missing(run: Run) -> str:
    lines = [line.partition(f"{MISSING}:")[2].strip() for line in run["said"].splitlines() if MISSING in line]
    return lines[-1] if lines else "such program"


def _last_words(run: Run) -> str:
    """Why a program failed: what it said itself, not what srun says of it."""
    own = "\n".join(line for line in run["said"].splitlines() if not line.startswith(("srun: ", LINK)))
    return last_line({**run, "said": own or run["said"]})


def _gpu_hint(node: str) -> str:
    return f"nvidia-smi topo -m; nvidia-smi nvlink --status; dmesg | grep -i xid   (on {node})"


def _wrong_nccl(run: Run, ranks: int) -> str:
    """What is wrong with an all-reduce but for its speed; empty when it is right."""
    read = read_nccl(run["said"])
    numbers = sorted(rank for rank, _, _ in read["ranks"])
    if run["code"] != 0 and not read["ranks"]:
        return _last_words(run)
    if numbers != list(range(ranks)):
        alone = len(numbers) > 1 and set(numbers) == {0}
        return f"{len(set(numbers))} of {ranks} ranks" + (": it was built without MPI" if alone else "")
    if read["wrong"]:
        return f"{read['wrong']} wrong values"
    if run["code"] != 0 or read["wrong"] is None:
        return f"it did not come to its end: {_last_words(run)}"
    return ""


@measured("nccl")
def nccl(context: Context) -> Iterator[Result]:
    """NCCL's all-reduce has all its ranks and right results, in every node and over all."""
    gpus = (context.questions.plan or {})["gpus"]
    for found in context.runs("nccl").values():
        for node, run in found["alone"].items():
            if result := _unmeasured(context, "nccl", node, run):
                yield result
            elif wrong := _wrong_nccl(run, gpus[node]):
                yield failed(f"within the node: {wrong}", node, hint=_gpu_hint(node))
            else:
                yield passed(f"{gpus[node]} ranks, all values right", node)
        if together := found.get("together"):
            yield _all_together(found["nodes"], gpus, together, found.get("pairs") or {})


def _all_together(nodes: list[str], gpus: Mapping[str, int], run: Run, pairs: Mapping[str, Run]) -> Result:
    if is_refused(run):
        return not_measured(_APART)
    ranks = sum(gpus[node] for node in nodes)
    if not (wrong := _wrong_nccl(run, ranks)):
        return passed(f"{ranks} ranks on {len(nodes)} nodes, all values right")
    broken = [
        (a, b)
        for a, b in (name.split() for name in pairs)
        if _wrong_nccl(pairs[f"{a} {b}"], gpus[a] + gpus[b])
    ]
    guilty = [host for host, _ in blamed(broken)]
    where = guilty[0] if len(guilty) == 1 else ""
    named = f"; in pairs it fails with {', '.join(guilty)}" if guilty else ""
    hint = f"srun --partition=… NCCL_DEBUG=INFO all_reduce_perf; ibstat   (on {where or 'the nodes'})"
    return failed(f"over {len(nodes)} nodes: {wrong}{named}", where, hint=hint)


@measured("nccl")
def nccl_bandwidth(context: Context) -> Iterator[Result]:
    """NCCL's all-reduce is as fast as it is known to be on such GPUs and such a fabric."""
    for found in context.runs("nccl").values():
        right = {
            node: run
            for node, run in found["alone"].items()
            if not _unmeasured(context, "nccl", node, run) and read_nccl(run["said"])["bandwidth"]
        }
        for node, run in found["alone"].items():
            if node not in right:
                yield _unmeasured(context, "nccl", node, run) or not_measured("see nccl", node)
        yield from _within_nodes(context, right)
        if together := found.get("together"):
            yield from _between_nodes(context, found["nodes"], together, found.get("pairs") or {})


def _promised(context: Context, run: Run, gpus: int, links: list[float] | None) -> float | None:
    read = read_nccl(run["said"])
    asked = (context.questions.plan or {})["performance"]
    return expected(asked["expected"], asked["ports"], read["ranks"][0][2], gpus, links)


def _within_nodes(context: Context, runs: Mapping[str, Run]) -> Iterator[Result]:
    gpus = (context.questions.plan or {})["gpus"]
    figures = {node: float(read_nccl(run["said"])["bandwidth"]) for node, run in runs.items()}
    usual = lowest_usual(figures, context.thresholds.outlier_deviations, context.thresholds.outlier_percent)
    for node, figure in figures.items():
        if gpus[node] == 1:
            yield not_applicable("it has one GPU", node)
            continue
        promised = _promised(context, runs[node], gpus[node], None)
        least = promised * context.thresholds.bus_bandwidth_percent / _PERCENT if promised else None
        limits = [limit for limit in (least, usual) if limit is not None]
        more: dict[str, Any] = {"value": figure, "unit": "GB/s", "is_rate": True}
        if not limits:
            gpu = read_nccl(runs[node]["said"])["ranks"][0][2]
            yield not_measured(_unknown(figure, gpu, gpus[node], "node"), node)
        elif figure < max(limits):
            more["expected"] = f">= {max(limits):.0f} GB/s"
            yield failed(f"{figure:.0f} GB/s within the node", node, hint=_gpu_hint(node), **more)
        else:
            more["expected"] = f">= {max(limits):.0f} GB/s"
            yield passed(f"{figure:.0f} GB/s within the node", node, **more)


def _unknown(figure: float, gpu: str, gpus: int, fabric: str) -> str:
    entry = f"{{gpu: {gpu}, gpus: {gpus}, fabric: {fabric}, gb_per_s: …}}"
    return f"{figure:.0f} GB/s, and no figure to compare it with: bus_bandwidth: [{entry}] in validation.yml"


def _between_nodes(
    context: Context, nodes: list[str], run: Run, pairs: Mapping[str, Run]
) -> Iterator[Result]:
    read = read_nccl(run["said"])
    if not read["bandwidth"]:
        yield not_measured("over all nodes: see nccl")
        return
    gpus, figure = (context.questions.plan or {})["gpus"][nodes[0]], float(read["bandwidth"])
    links = fewest(read["links"], dict(run))
    promised = _promised(context, run, gpus, links)
    over = f"over {len(nodes)} nodes"
    if promised is None:
        yield not_measured(f"{over}: {_unknown(figure, read['ranks'][0][2], gpus, fabric_of(links))}")
        return
    least = promised * context.thresholds.bus_bandwidth_percent / _PERCENT
    more: dict[str, Any] = {
        "value": figure,
        "unit": "GB/s",
        "is_rate": True,
        "expected": f">= {least:.0f} GB/s",
    }
    if figure >= least:
        yield passed(f"{figure:.0f} GB/s {over}, {fabric_of(links)} Gb/s each", **more)
        return
    slow = {name: float(read_nccl(one["said"])["bandwidth"]) for name, one in pairs.items()}
    failures = [(a, b) for a, b in (name.split() for name, value in slow.items() if value < least)]
    guilty = [host for host, _ in blamed(failures)]
    if not guilty:
        said = "every pair of neighbours is fast enough: look at the switches" if pairs else ""
        yield failed(f"{figure:.0f} GB/s {over}", hint=said or "ibstat; ibdiagnet", **more)
        return
    yield failed(
        f"{figure:.0f} GB/s {over}; slow in pairs: {', '.join(guilty[:_FEW])}", hint="ibdiagnet", **more
    )
    for node in guilty:
        worst = min(value for name, value in slow.items() if node in name.split())
        hint = f"ibstat; mlxlink -d mlx5_0 --show_counters; nvidia-smi topo -m   (on {node})"
        yield failed(f"{worst:.0f} GB/s with a neighbour", node, hint=hint, **{**more, "value": worst})


@measured("nvbandwidth")
def nvbandwidth(context: Context) -> Iterator[Result]:
    """The copies of every GPU are as fast as those of the other GPUs of its type."""
    tables: dict[str, dict[str, Any]] = {}
    for node, run in context.runs("nvbandwidth").items():
        if result := _unmeasured(context, "nvbandwidth", node, run):
            yield result
            continue
        tables[node] = benchmark_text.nvbandwidth(run["said"])
        if run["code"] != 0 or tables[node]["wrong"] or not tables[node]["copies"]:
            said = "; ".join(tables[node]["wrong"][:_FEW]) or last_line(run)
            yield failed(said, node, hint=_gpu_hint(node))
            del tables[node]
    types: dict[str, list[str]] = {}
    for node in tables:
        types.setdefault(context.type_of(node), []).append(node)
    for nodes in types.values():
        slow = _slow_copies(context, nodes, tables)
        for node in nodes:
            values = [figure for row in tables[node]["copies"].values() for figure in row.values()]
            more: dict[str, Any] = {"value": min(values), "unit": "GB/s", "is_rate": True}
            if node in slow:
                yield failed("; ".join(slow[node][:_FEW]), node, hint=_gpu_hint(node), **more)
            else:
                yield passed(f"{len(values)} copies, the slowest {min(values):.1f} GB/s", node, **more)


def _slow_copies(
    context: Context, nodes: list[str], tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[str]]:
    """By node, the copies that are slower than the others of their kind."""
    found: dict[str, list[str]] = {}
    tests = dict.fromkeys(name for node in nodes for name in tables[node]["copies"])
    for test in tests:
        figures = {
            f"{node} {gpu}": figure
            for node in nodes
            for gpu, figure in tables[node]["copies"].get(test, {}).items()
        }
        usual = lowest_usual(
            figures, context.thresholds.outlier_deviations, context.thresholds.outlier_percent
        )
        for name, figure in figures.items():
            if usual is not None and figure < usual:
                node, gpu = name.split(" ", 1)
                said = f"{test} of GPU {gpu}: {figure:.1f} GB/s, others >= {usual:.1f}"
                found.setdefault(node, []).append(said)
    return found


@measured("dcgm")
def dcgm(context: Context) -> Iterator[Result]:
    """DCGM's diagnostics of every GPU pass."""
    for node, run in context.runs("dcgm").items():
        if result := _unmeasured(context, "dcgm", node, run):
            yield result
            continue
        hint = f"dcgmi diag -r 1; systemctl status nvidia-dcgm   (on {node})"
        results = benchmark_text.dcgm(run["said"])
        wrong = [result for result in results if result.status in {"fail", "warn"}]
        count = sum(result.status == "pass" for result in results)
        if wrong:
            said = "; ".join(f"{one.test}, GPU {one.gpu}: {one.why or one.status}" for one in wrong[:_FEW])
            yield failed(said, node, hint=hint)
        elif not count:
            yield failed(f"no test passed: {last_line(run)}", node, hint=hint)
        else:
            yield passed(f"{count} results of level 1", node)


@measured("training", needs_gpus=False)
def training(context: Context) -> Iterator[Result]:
    """PyTorch trains on every node and over all: every rank there, the same weights, less loss."""
    for found in context.runs("training").values():
        tasks = int(found["tasks"])
        for node, run in found["alone"].items():
            hint = f"srun -w {node} --ntasks={tasks} python3 …; journalctl -u slurmd   (on {node})"
            if result := _unmeasured(context, "python", node, run):
                yield result
            elif (cpus := _cpus(context, node)) < tasks:
                yield not_measured(f"{tasks} ranks have no room on its CPUs ({cpus:.0f})", node)
            elif wrong := _wrong_training(run, tasks):
                yield failed(f"on the node alone: {wrong}", node, hint=hint)
            else:
                answer = run["answers"][0]
                yield passed(f"{tasks} ranks with {answer['backend']}, torch {answer['torch']}", node)
        if run := found.get("together"):
            count = tasks * len(found["nodes"])
            if is_refused(run):
                yield not_measured(_APART)
            elif wrong := _wrong_training(run, count):
                silent = sorted({*found["nodes"]} - {answer["node"] for answer in run["answers"]})
                named = f"; nothing from {', '.join(silent[:_FEW])}" if silent and run["answers"] else ""
                hint = "look at the names and ways between nodes: deploy validate --only names --only ways"
                yield failed(f"on {len(found['nodes'])} nodes: {wrong}{named}", hint=hint)
            else:
                yield passed(f"{count} ranks on {len(found['nodes'])} nodes", value=run["seconds"], unit="s")


def _cpus(context: Context, node: str) -> float:
    """How many Slurm knows of; more than anybody asks for where it does not answer."""
    return float(context.slurm_nodes.get(node, {}).get("CPUTot", inf))


def _wrong_training(run: Run, ranks: int) -> str:
    answers = run["answers"]
    numbers = sorted(answer["rank"] for answer in answers)
    if numbers != list(range(ranks)):
        return f"{len(numbers)} of {ranks} ranks answered" if numbers else _last_words(run)
    if {answer["ranks"] for answer in answers} != {ranks}:
        return f"a sum over all ranks is {answers[0]['ranks']}, not {ranks}"
    if not all(answer["is_same"] for answer in answers):
        return "the ranks ended with different weights"
    if any(not answer["losses"][1] < answer["losses"][0] for answer in answers):
        return "the loss did not become less"
    return "" if run["code"] == 0 else _last_words(run)
