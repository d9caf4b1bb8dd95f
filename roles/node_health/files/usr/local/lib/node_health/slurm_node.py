"""What Slurm says of this node, and what is to be done about it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from slurm_nodes import parse_nodes

PREFIX = "node_health: "
"""How every reason begins that this program gives, and nobody else should give."""
_LONGEST_REASON = 400
_SECONDS = 15.0
_OUT_OF_SERVICE = frozenset(
    {"DRAIN", "DOWN", "FAIL", "FUTURE", "MAINT", "MAINTENANCE", "POWER_DOWN", "POWERED_DOWN", "POWERING_DOWN"}
    | {"REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED"}
)


class SlurmError(Exception):
    """Slurm did not answer, or refused."""


class Action(Enum):
    """What is due."""

    NOTHING = "nothing"
    DRAIN = "drain"
    RESUME = "resume"


@dataclass(frozen=True)
class NodeState:
    """``flags`` are the words of State=, as in IDLE+DRAIN; ``reason`` was given at ``since``."""

    flags: frozenset[str]
    reason: str
    since: str

    @property
    def is_drained(self) -> bool:
        """Whether no new job starts here, because somebody said so."""
        return "DRAIN" in self.flags

    @property
    def is_held(self) -> bool:
        """Whether the reason is in force; in service, it is a leftover of something that is over."""
        return bool(self.flags & _OUT_OF_SERVICE)


def parse_node(text: str) -> NodeState:
    """`scontrol --oneliner show node NAME`."""
    for node in parse_nodes(text):
        return NodeState(node.flags, node.reason, node.since)
    message = "scontrol does not say the node's state"
    raise SlurmError(message)


def reason_for(faults: Sequence[str]) -> str:
    """The reason of a drain, on one line."""
    return (PREFIX + "; ".join(" ".join(fault.split()) for fault in faults))[:_LONGEST_REASON].strip()


def decide(faults: Sequence[str], state: NodeState) -> Action:
    """Drain an ill node unless somebody gave a reason of his own; resume only what this program drained."""
    ours = state.reason.startswith(PREFIX.strip())
    if faults:
        is_said = ours and state.is_drained and state.reason == reason_for(faults)
        is_foreign = bool(state.reason) and not ours and state.is_held
        return Action.NOTHING if is_said or is_foreign else Action.DRAIN
    return Action.RESUME if ours and state.is_drained else Action.NOTHING


def read_node(name: str) -> NodeState:
    """Asks the controller. Raises SlurmError."""
    return parse_node(scontrol("--oneliner", "show", "node", name))


def act(action: Action, name: str, faults: Sequence[str], state: NodeState) -> None:
    """Has the controller do it. Raises SlurmError."""
    if action is Action.DRAIN:
        scontrol("update", f"NodeName={name}", "State=DRAIN", f"Reason={reason_for(faults)}")
    elif action is Action.RESUME:
        resume(name, state)


def resume(name: str, state: NodeState) -> None:
    """Takes a drain back. Raises SlurmError."""
    # A node that Slurm itself took down stays down until it registers; else the reason goes, too.
    word = "UNDRAIN" if "DOWN" in state.flags else "RESUME"
    scontrol("update", f"NodeName={name}", f"State={word}")


def scontrol(*words: str) -> str:
    """What it says. Raises SlurmError."""
    return ask("scontrol", *words)


def ask(*command: str) -> str:
    """What one of Slurm's commands says. Raises SlurmError."""
    try:
        done = subprocess.run(
            [*command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise SlurmError(str(problem)) from None
    if done.returncode != 0:
        raise SlurmError((done.stderr or done.stdout).strip())
    return done.stdout
