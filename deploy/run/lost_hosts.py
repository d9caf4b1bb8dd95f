"""A host that is lost in the midst of a task is one that is not reached any more, not one whose task failed.

So the others go on without it. Of modules that mitogen runs in a process of their own on the host, it says
that the process is gone, whether alone or with its host.
"""

import logging
from types import ModuleType
from typing import Any

from ansible.errors import AnsibleError
from mitogen.core import ChannelError

from deploy.run.patches import replace

_LOST = "it does not answer any more: the connection ended in the midst of this task (%s)"
_GONE = "the module's process ended before it had an answer: something killed it, perhaps for want of memory"


def tell_lost_hosts(planner: ModuleType, chain: type[Any], target: ModuleType) -> None:
    """Has mitogen tell them apart: ``planner`` runs modules, by a ``chain`` of calls to a ``target``.

    Raises AttributeError where mitogen's has other parts.
    """
    invoke, file_exists = planner.invoke, target.file_exists

    def invoke_and_tell(invocation: Any) -> Any:  # noqa: ANN401 - mitogen has no types
        try:
            return invoke(invocation)
        except ChannelError as problem:
            # Where the host is lost, this says so.
            invocation.connection.get_chain().call(file_exists, "/")
            raise AnsibleError(_GONE) from problem

    replace(planner, "invoke", invoke_and_tell)
    replace(chain, "call_aborted_msg", _LOST)
    # Of a connection that has ended mitogen knows nothing any more, and warns when it is given back.
    logging.getLogger("ansible_mitogen.services").addFilter(
        lambda told: "refcount was 0" not in str(told.msg)
    )
