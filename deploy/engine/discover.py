"""Step: the hardware contract, completed by asking the nodes that it says nothing of yet."""

from collections.abc import Callable
from dataclasses import dataclass, field

from deploy.engine.run import Run
from deploy.engine.story import Story
from deploy.judge.served import is_new_cluster
from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import write_discovery
from deploy.run.events import Event, HostResult
from deploy.run.execute import execute
from deploy.site.hardware import Contract, completed, keep, read_contract, undiscovered


@dataclass(frozen=True)
class Machines:
    """What the nodes have, and what of it was ``found`` just now and is not in the site's file.

    ``are_new`` when all machines were asked and none is of a cluster yet.
    """

    contract: Contract
    found: Contract = field(default_factory=dict)
    are_new: bool = False


def discover(run: Run, tell: Callable[[Event], None]) -> Machines:
    """Asks nodes of unknown hardware."""
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
    return Machines(completed(run.site, contract, found), found, are_new=are_new)


def keep_found(run: Run, machines: Machines, story: Story) -> None:
    """Keeps in the site what nodes said that they have; only a run that nothing stopped does."""
    if machines.found and not (run.options.check or story.is_stopped):
        keep(run.site, machines.found)
