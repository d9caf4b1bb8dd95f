"""Asks before something is lost."""

import signal
import sys

import typer

_WORD = "yes"


def ask_to_go_on(loss: str = "Jobs would be lost") -> bool:
    """Whether the admin types yes; where there is no terminal, nobody does."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    # A run turns Ctrl-C into an order to Ansible; here it means no.
    order = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer = typer.prompt(f"{loss}. Type {_WORD} to go on", default="no", show_default=False)
    finally:
        signal.signal(signal.SIGINT, order)
    return str(answer).strip().lower() == _WORD


def go_on() -> bool:
    """The admin said --yes."""
    return True
