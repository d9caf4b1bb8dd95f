"""ansible-playbook that does its imports before it is told its arguments, and runs several playbooks in turn.

Run as a script of its own, while deploy still reads and checks the site:

    warm.py GATE ...      (what follows is there for whoever looks at the list of processes)

Through GATE, a named pipe, come lines of JSON: ``{"command": [...], "mark": "..."}``, a command line and the
uuid of the event that says it is done. What one playbook imported, and mitogen's connections, are there for
the next. A playbook that did not come to its end is the last.
"""

import base64
import json
import sys
import warnings
from pathlib import Path

import ansible.context
import ansible.executor.playbook_executor
import ansible.plugins.strategy.linear
from ansible.cli.playbook import main as ansible_playbook
from ansible.parsing.vault import VaultSecretsContext
from ansible.utils.context_objects import CLIArgs
from ansible.utils.vars import load_extra_vars, load_options_vars

from deploy.run.compiled_templates import keep_compiled_templates
from deploy.run.exit_status import CAME_TO_ITS_END


def main() -> None:
    """Wait, be ansible-playbook, wait again."""
    keep_compiled_templates(Path(sys.argv[1]).with_name("templates"))
    with Path(sys.argv[1]).open(encoding="utf-8") as gate:
        while line := gate.readline():
            request = json.loads(line)
            code = run(request["command"])
            if code not in CAME_TO_ITS_END:
                sys.exit(code)
            _tell({"event": "deploy_done", "uuid": request["mark"], "rc": code})


def run(command: list[str]) -> int:
    """Be ``ansible-playbook`` with this command line, its name first; returns the exit status."""
    sys.argv = command
    _forget()
    # So it is: by the playbook before.
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured", UserWarning)
    try:
        ansible_playbook()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _forget() -> None:
    """What ansible-core, made for one command line a process, remembers of the command line before."""
    ansible.context.GlobalCLIArgs = CLIArgs  # the class that stands there keeps the first
    VaultSecretsContext._current = None  # noqa: SLF001
    for load, kept in ((load_extra_vars, "extra_vars"), (load_options_vars, "options_vars")):
        if hasattr(load, kept):
            delattr(load, kept)


def _tell(event: dict[str, object]) -> None:
    """An event as ansible-runner's callback plugin writes it, its beginning and its end."""
    for content in (event, {}):
        text = base64.b64encode(json.dumps(content).encode()).decode()
        sys.stdout.write(f"\x1b[K{text}\x1b[{len(text)}D\x1b[K")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
