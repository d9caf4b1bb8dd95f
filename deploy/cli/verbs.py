"""The verbs, each imported only when it is typed: no verb pays for the imports of another."""

import inspect
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


class Verb(TyperCommand):
    """A verb known by name and summary; its module is imported when the verb itself is wanted.

    ``place`` is ``module:name`` of a function, or of a Typer with verbs of its own.
    """

    def __init__(self, name: str, place: str, summary: str) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)
        self._place = place

    def load(self) -> TyperCommand | TyperGroup:
        """The verb with its options and its full help."""
        module, _, name = self._place.partition(":")
        verb = getattr(import_module(module), name)
        if not isinstance(verb, typer.Typer):
            function, verb = verb, plain_typer()
            verb.command()(function)
        command = get_command(verb)
        assert isinstance(command, TyperCommand | TyperGroup)  # noqa: S101 - for mypy; Typer makes no other
        command.name = self.name
        _keep_lines_of_examples(command)
        return command

    def make_context(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - Typer's own signature
        """What Typer asks a command for before it runs or completes it: here the real one takes over."""
        return self.load().make_context(*arguments, **named)


def plain_typer(*, add_completion: bool = False, **settings: Any) -> typer.Typer:  # noqa: ANN401 - Typer's own
    """A Typer whose help is plain text: it needs no colours, and appears twice as fast as rich's."""
    return typer.Typer(add_completion=add_completion, rich_markup_mode=None, **settings)


def _keep_lines_of_examples(command: TyperCommand | TyperGroup) -> None:
    """Help is rewrapped to the terminal's width, but for a paragraph that a backspace marks."""
    text = inspect.cleandoc(command.help or "")
    command.help = text.replace("\nExamples:\n", "\n\b\nExamples:\n")
    for inner in getattr(command, "commands", {}).values():
        _keep_lines_of_examples(inner)
