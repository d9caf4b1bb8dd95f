"""A whole run in a process of its own, so that a test can interrupt and kill it.

driver.py PLAYBOOK INVENTORY [--openssh]
"""

import sys
from contextlib import closing
from pathlib import Path

from deploy.errors import DeployError
from deploy.judge.summary import Summary, summarize
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event
from deploy.run.execute import RunRequest, execute
from deploy.run.journal import Journal, state_directory
from deploy.run.lock import site_lock
from deploy.run.settings import Settings, ansible_environment
from deploy.show.plain import PlainDisplay

HOSTS = ("node1", "node2")


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a test reads it


def run(playbook: Path, inventory: Path, settings: Settings) -> Summary:
    """What ``deploy cluster`` does, without a cluster."""
    display = PlainDisplay(_print)
    events: list[Event] = []
    with site_lock(state_directory(inventory.parent)), signals_cancel() as cancellation, closing(display):
        journal = Journal.create(inventory.parent, {"hosts": list(HOSTS), "arguments": ["test"]})

        def on_event(event: Event) -> None:
            events.append(event)
            journal.append(event)
            display.event(event)

        display.start("test", HOSTS)
        request = RunRequest(playbook, (inventory,), environment=ansible_environment(settings))
        execute(request, on_event, cancellation)
        summary = summarize(events, HOSTS, started=journal.started)
        journal.finish()
        display.finish(summary, "nothing")
    return summary


if __name__ == "__main__":
    chosen = Settings(hosts=len(HOSTS), mitogen="--openssh" not in sys.argv)
    try:
        sys.exit(run(Path(sys.argv[1]), Path(sys.argv[2]), chosen).exit_code)
    except DeployError as problem:
        _print(str(problem))
        sys.exit(problem.exit_code)
