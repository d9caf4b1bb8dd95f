"""The verbs, each imported only when it is typed: no verb pays for the imports of another."""

import inspect
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


class Verb(TyperCommand):
    """A verb known by name and summary; its module is imported when the verb itself is wanted.

    ``place`` is ``module:name`` of a function, or of a Typer with verbs of its own. Of a verb that
    ``reads_inventory`` the context's object is a ListingProcess, which starts while the verb is imported.
    """

    def __init__(self, name: str, place: str, summary: str, *, reads_inventory: bool = False) -> None:
        super().__init__(name, help=summary, rich_markup_mode=None)
        self._place = place
        self._reads_inventory = reads_inventory

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

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: Any = None,  # noqa: ANN401 - Typer's own signature
        **extra: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """What Typer asks a command for before it runs or completes it: here the real one takes over."""
        only_completes = extra.get("resilient_parsing", False)
        if not self._reads_inventory or only_completes or _asks_for_help(args):
            return self.load().make_context(info_name, args, parent, **extra)
        # Other verbs, and the list of verbs, need none.
        from deploy.site.listing_process import ListingProcess  # noqa: PLC0415

        with ExitStack() as stack:
            listing = stack.enter_context(ListingProcess())
            context = self.load().make_context(info_name, args, parent, obj=listing, **extra)
            context.with_resource(stack.pop_all())
            return context


def plain_typer(*, add_completion: bool = False, **settings: Any) -> typer.Typer:  # noqa: ANN401 - Typer's own
    """A Typer whose help is plain text: it needs no colours, and appears twice as fast as rich's."""
    return typer.Typer(add_completion=add_completion, rich_markup_mode=None, **settings)


def _asks_for_help(words: list[str]) -> bool:
    return "--help" in words or "-h" in words


def _keep_lines_of_examples(command: TyperCommand | TyperGroup) -> None:
    """Help is rewrapped to the terminal's width, but for a paragraph that a backspace marks."""
    text = inspect.cleandoc(command.help or "")
    command.help = text.replace("\nExamples:\n", "\n\b\nExamples:\n")
    for inner in getattr(command, "commands", {}).values():
        _keep_lines_of_examples(inner)
