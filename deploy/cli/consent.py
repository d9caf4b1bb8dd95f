"""Asks before something is lost, and before a new host key is believed."""

import signal
import sys

import typer

_WORD = "yes"


def ask_to_go_on(loss: str = "Jobs would be lost") -> bool:
    """Whether the admin types yes; where there is no terminal, nobody does."""
    return _is_yes(loss)


def confirm_host_key(node: str, fingerprint: str) -> bool:
    """Whether the admin knows the new host key of a node."""
    return _is_yes(f"{node} has a new host key, {fingerprint}. Compare it with its console's")


def confirm_host_keys(count: int) -> bool:
    """Whether the admin knows the host keys that were shown."""
    return _is_yes(
        f"{count} host key{'s' * (count != 1)} are new here. Compare them with the machines' consoles"
    )


def _is_yes(question: str) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    # A run turns Ctrl-C into an order to Ansible; here it means no.
    order = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer = typer.prompt(f"{question}. Type {_WORD} to go on", default="no", show_default=False)
    finally:
        signal.signal(signal.SIGINT, order)
    return str(answer).strip().lower() == _WORD


def go_on() -> bool:
    """The admin said --yes."""
    return True


def refuse() -> bool:
    """Nobody is there to be asked."""
    return False
