"""Action plugin of node_status: adds what only both ends together know, by how much their clocks differ."""

import time
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs the module, then looks at the host's clock over the connection that is there by now."""

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's answer with ``ahead``, in seconds: at least, and at most."""
        super().run(tmp, task_vars)
        result: dict[str, Any] = self._execute_module(task_vars=task_vars)
        if "deploy_answer" in result:
            sent = time.time()
            said = self._low_level_execute_command("date +%s.%N", sudoable=False)
            received = time.time()
            theirs = float(said["stdout"])
            result["deploy_answer"]["ahead"] = [theirs - received, theirs - sent]
        return result
