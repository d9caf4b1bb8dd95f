"""ansible-playbook that does its imports before it is told its arguments.

Run as a script of its own, while deploy still reads and checks the site:

    warm.py GATE ...      (what follows is there for whoever looks at the list of processes)

One line of JSON comes through GATE, a named pipe: the command line. Without one nothing is run.
"""

import json
import sys
from pathlib import Path

import ansible.executor.playbook_executor
import ansible.plugins.strategy.linear  # noqa: F401 - half of what a playbook needs after its arguments
from ansible.cli.playbook import main as ansible_playbook


def main() -> None:
    """Wait, then be ansible-playbook."""
    with Path(sys.argv[1]).open(encoding="utf-8") as gate:
        line = gate.readline()
    if line:
        sys.argv = json.loads(line)
        ansible_playbook()


if __name__ == "__main__":
    main()
