"""What our strategies add to Ansible's: at the end of a play, on which hosts its last task ended.

Ansible reports results of tasks. That a host left a play early, because it failed, could not be reached or
was taken out with others (``max_fail_percentage``), or that the process broke, shows in no result of its own.
"""

from typing import Any

from ansible.executor.play_iterator import IteratingStates


class TellsItsEnd:
    """A strategy that tells callback plugins which hosts came to the end of the play."""

    _tqm: Any

    def run(self, iterator: Any, *arguments: Any) -> Any:  # noqa: ANN401 - as in Ansible
        """Runs a play; where it is interrupted nothing is told."""
        code = super().run(iterator, *arguments)  # type: ignore[misc]
        hosts = [name for name in iterator.host_states if self._is_done(iterator, name)]
        for plugin in self._tqm._callback_plugins:  # noqa: SLF001 - Ansible sends no events but its own
            if tell := getattr(plugin, "deploy_play_ended", None):
                tell(hosts)
        return code

    def _is_done(self, iterator: Any, name: str) -> bool:  # noqa: ANN401
        state = iterator.get_state_for_host(name)
        is_lost = name in self._tqm._unreachable_hosts or name in self._tqm._failed_hosts  # noqa: SLF001
        return state.run_state == IteratingStates.COMPLETE and not state.fail_state and not is_lost
