"""What a burn-in found: load for hours, every result checked, nodes of a type compared with each other."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from deploy.validate.context import Context, without_jobs
from deploy.validate.outliers import lowest_usual
from deploy.validate.result import Result, failed, not_measured, passed

_ENOUGH = 0.8
"""Between two rounds a node rests for some seconds, and the first begins late."""
_FEW = 3
_HOUR = 3600
_CORRECTED, _UNCORRECTED = "memory errors corrected", "memory errors"
_INDEX, _ECC, _CORRECTED_ECC, _FIRST_REASON, _LAST_REASON = 0, 1, 2, 3, 7
_REASONS = ("hardware slowdown", "thermal slowdown (hardware)", "thermal slowdown (software)", "power brake")


def burn_in(context: Context) -> Iterator[Result]:
    """A node under load for hours computes right, reports no errors, and is no slower than its like."""
    found = (context.jobs or {}).get("burn_in")
    if context.jobs is None:
        yield without_jobs(context)
        return
    if not found:
        yield not_measured("not asked for: --burn-in HOURS")
        return
    rates = {node: _rates(record) for node, record in found["nodes"].items()}
    slow = _slow(context, rates)
    for node, record in found["nodes"].items():
        wrong = [*_wrong(record), *_complaints(context, node), *slow.get(node, ())]
        worked = sum(one.get("seconds", 0.0) for one in record["rounds"])
        took = f"{worked / _HOUR:.2f} of {found['seconds'] / _HOUR:.2f} hours"
        hint = f"journalctl --dmesg; nvidia-smi -q; sensors; rasdaemon's ras-mc-ctl --errors   (on {node})"
        rate = next(iter(rates[node].values()), None)
        more: dict[str, Any] = {}
        if rate is not None:
            more = {"value": rate, "unit": next(iter(rates[node])).split()[-1], "is_rate": True}
        if wrong:
            yield failed("; ".join(wrong[:_FEW]), node, hint=hint, **more)
        elif not record["rounds"]:
            yield not_measured(_untouched(context, node, record), node)
        elif worked < _ENOUGH * found["seconds"]:
            yield not_measured(f"{took}, without a fault; then jobs of users had it", node)
        elif not (why := _unloaded(record)):
            yield passed(
                f"{took}, {_said(rates[node])}, every result right{_unwatched(context, node)}", node, **more
            )
        else:
            result = not_measured(f"{took}, {_said(rates[node]) or 'nothing finished'}: {why}", node)
            yield replace(result, **more)


def _untouched(context: Context, node: str, record: Mapping[str, Any]) -> str:
    """Why a node was not loaded at all."""
    told = (context.jobs or {}).get("trouble") or []
    trouble = [text for text in told if text.startswith(("sinfo", f"burn-in on {node}:"))]
    if trouble:
        return str(trouble[0])
    if record["waited"]:
        return "it was idle, but its job did not begin within a minute"
    return "it was never idle: jobs of users have it"


def _said(rates: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name.rsplit(' ', 1)[0]} {rate:.4g} {name.rsplit(' ', 1)[1]}" for name, rate in rates.items()
    )


def _answers(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in record["rounds"] if "cpu" in one]


def _rates(record: Mapping[str, Any]) -> dict[str, float]:
    """The best that each part of a node did in any round, by its name and unit; less of noise than a mean."""
    best: dict[str, float] = {}
    for answer in _answers(record):
        cpu = answer["cpu"]
        parts = [(f"{cpu['what']} {cpu['unit']}", cpu["rate"])]
        parts += [(f"GPU {gpu['gpu']} TFLOP/s", gpu["rate"]) for gpu in answer["gpus"] if gpu.get("rate")]
        for name, rate in parts:
            if rate:
                best[name] = max(best.get(name, 0.0), float(rate))
    return best


def _slow(context: Context, rates: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """By node, what it did slower than the others of its type."""
    groups: dict[tuple[str, str], dict[str, float]] = {}
    for node, parts in rates.items():
        for name, rate in parts.items():
            # One GPU is compared with all of the type, not only with those of the same number.
            kind = "GPU TFLOP/s" if name.startswith("GPU ") else name
            groups.setdefault((context.type_of(node), kind), {})[f"{node} {name}"] = rate
    found: dict[str, list[str]] = {}
    for figures in groups.values():
        usual = lowest_usual(
            figures, context.thresholds.outlier_deviations, context.thresholds.outlier_percent
        )
        for place, rate in figures.items():
            if usual is not None and rate < usual:
                node, what = place.split(" ", 1)
                name, unit = what.rsplit(" ", 1)
                found.setdefault(node, []).append(
                    f"{name}: {rate:.4g} {unit}, others of its type >= {usual:.4g}"
                )
    return found


def _wrong(record: Mapping[str, Any]) -> Iterator[str]:
    """What the rounds themselves report."""
    for lost in (one for one in record["rounds"] if "lost" in one):
        yield f"job {lost['job']} ended without an answer"
    answers = _answers(record)
    for answer in answers:
        yield from answer["cpu"]["wrong"]
        for gpu in answer["gpus"]:
            yield from (f"GPU {gpu['gpu']}: {text}" for text in gpu["wrong"])
    throttled = sum(answer["counted"].get("throttled", 0) for answer in answers)
    if throttled:
        yield f"cores were throttled {throttled} times for their heat"
    if errors := sum(answer["counted"].get(_UNCORRECTED, 0) for answer in answers):
        yield f"{errors} memory errors that were not corrected"
    if corrected := sum(answer["counted"].get(_CORRECTED, 0) for answer in answers):
        yield f"{corrected} memory errors that were corrected"
    yield from _wrong_gpus([answer["samples"] for answer in answers])


def _wrong_gpus(rounds: list[list[list[list[str]]]]) -> Iterator[str]:
    """What nvidia-smi saw: errors that became more, and why clocks were held down."""
    samples = [sample for one in rounds for sample in one]
    if not samples:
        return
    for first, last in ((one[0], one[-1]) for one in rounds if one):
        after = {line[_INDEX]: line for line in last}
        for line in first:
            for column, what in ((_ECC, "ECC errors"), (_CORRECTED_ECC, "corrected ECC errors")):
                more = _number(after.get(line[_INDEX], line)[column]) - _number(line[column])
                if more > 0:
                    yield f"GPU {line[_INDEX]}: {more} {what}"
    seen = {
        (line[_INDEX], reason)
        for sample in samples
        for line in sample
        for reason, word in zip(_REASONS, line[_FIRST_REASON:_LAST_REASON], strict=False)
        if word == "Active"
    }
    for index, reason in sorted(seen):
        yield f"GPU {index}: clocks held down, {reason}"


def _number(word: str) -> int:
    return int(word) if word.isdigit() else 0


def _complaints(context: Context, node: str) -> Iterator[str]:
    told = context.answers.complaints.get(node) or {}
    if told.get("count"):
        yield f"its kernel, {told['count']} times: {told['lines'][0]}"


def _unwatched(context: Context, node: str) -> str:
    told = context.answers.complaints.get(node)
    why = "it could not be asked" if told is None else told["why"]
    return f" (its kernel's log was not read: {why})" if why else ""


def _unloaded(record: Mapping[str, Any]) -> str:
    """Why a node without a fault was not under load, in full or in part; empty when it was."""
    answers = _answers(record)
    if not any(answer["cpu"]["rounds"] for answer in answers):
        return "no piece of work was finished; give it more time"
    idle = {gpu["gpu"] for answer in answers for gpu in answer["gpus"] if gpu.get("missing")}
    return f"{len(idle)} GPUs had nothing to do, there is no torch with CUDA: {_TORCH}" if idle else ""


_TORCH = "ml_stack_environments, or programs in validation.yml"
