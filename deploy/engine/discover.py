"""Step: the hardware contract, completed by asking the nodes that it says nothing of yet."""

from collections.abc import Callable
from dataclasses import dataclass

from deploy.engine.run import Run
from deploy.judge.served import is_new_cluster
from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import write_discovery
from deploy.run.events import Event, HostResult
from deploy.run.execute import execute
from deploy.site.hardware import Contract, keep, read_contract, undiscovered


@dataclass(frozen=True)
class Machines:
    """What the nodes have; ``are_new`` when all machines were asked and none is of a cluster yet."""

    contract: Contract
    are_new: bool = False


def discover(run: Run, tell: Callable[[Event], None], *, keeps: bool = True) -> Machines:
    """Asks nodes of unknown hardware, and keeps what they have in the site where ``keeps`` says so."""
    contract = read_contract(run.site)
    missing = [
        node for node in undiscovered(run.site, contract) if run.limit is None or node.name in run.limit
    ]
    if not missing:
        return Machines(contract)
    results: list[HostResult] = []

    def on_answer(event: Event) -> None:
        results.extend([event] if isinstance(event, HostResult) else [])
        tell(event)

    source = run.place / "discover.json"
    plan = build_plan(run.site, contract, limit=run.limit)
    write_discovery(source, run.site, plan, contract, missing)
    execute(run.request("discover", source), on_answer, run.cancellation, run.ansible)
    found = {r.host: r.answer["hardware"] for r in results if r.answer and "hardware" in r.answer}
    are_new = not contract and is_new_cluster(results)
    if run.options.check or not keeps or not found:
        return Machines({**contract, **{name: dict(of) for name, of in found.items()}}, are_new)
    keep(run.site, found)
    return Machines(read_contract(run.site), are_new)
