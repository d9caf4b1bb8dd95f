"""ansible-playbook that does its imports before it is told its arguments, and runs several playbooks in turn.

Run as a script of its own, while deploy still reads and checks the site:

    playbook_server.py GATE ...      (what follows is there for whoever looks at the list of processes)

Through GATE, a named pipe, come lines of JSON: ``{"command": [...], "mark": "..."}``, a command line and the
uuid of the event that says it is done. What one playbook imported, and mitogen's connections, are there for
the next. A playbook that did not come to its end is the last; so is the first where
it cannot be forgotten.
"""

import gc
import importlib
import json
import sys
import warnings
from contextlib import suppress
from pathlib import Path

from deploy.run.exit_status import CAME_TO_ITS_END
from deploy.run.patches import Patch, apply, notice, replace, tell
from deploy.run.settings import why_no_mitogen

_LOADED_BEFOREHAND = (
    "ansible.cli.playbook",
    "ansible.executor.playbook_executor",
    "ansible.plugins.strategy.linear",
)


def main() -> None:
    """Wait, be ansible-playbook, wait again."""
    # What is imported stays: it is not looked through for what may go, neither now nor later.
    gc.disable()
    for name in _LOADED_BEFOREHAND:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    gc.enable()
    apply(Patch.COMPILED_TEMPLATES, _keep_compiled_templates)
    if why := why_no_mitogen():
        notice(why)
    with Path(sys.argv[1]).open(encoding="utf-8") as gate:
        while line := gate.readline():
            request = json.loads(line)
            code = run(request["command"])
            if code not in CAME_TO_ITS_END or not forget():
                sys.exit(code)
            tell({"event": "deploy_done", "uuid": request["mark"], "rc": code})


def _keep_compiled_templates() -> None:
    # Here, so that the run survives where Ansible has no such parts any more.
    from deploy.run.compiled_templates import keep_compiled_templates  # noqa: PLC0415

    keep_compiled_templates(Path(sys.argv[1]).with_name("templates"))


def run(command: list[str]) -> int:
    """Be ``ansible-playbook`` with this command line, its name first; returns the exit status."""
    from ansible.cli.playbook import main as ansible_playbook  # noqa: PLC0415

    sys.argv = command
    # So it is: by the playbook before.
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured", UserWarning)
    try:
        ansible_playbook()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def forget() -> bool:
    """What ansible-core, made for one command line a process, remembers of the one that was run.

    False where it is not kept where it is known to be: then this process must not run another.
    """
    return apply(Patch.ONE_ANSIBLE, _forget) is not None


def _forget() -> bool:
    from ansible import context  # noqa: PLC0415
    from ansible.parsing.vault import VaultSecretsContext  # noqa: PLC0415
    from ansible.utils.context_objects import CLIArgs  # noqa: PLC0415
    from ansible.utils.vars import load_extra_vars, load_options_vars  # noqa: PLC0415

    replace(context, "GlobalCLIArgs", CLIArgs)  # the class that stands there keeps the first
    replace(VaultSecretsContext, "_current", None)
    del load_extra_vars.extra_vars, load_options_vars.options_vars
    return True


if __name__ == "__main__":
    main()
