"""Filter: the arguments of a daemon whose unit takes them from /etc/default."""

import re
from collections.abc import Callable, Iterable, Mapping


def as_one_word(argument: str) -> str:
    """An argument that systemd.service(5) keeps together when it splits a variable."""
    return re.sub(r"([\s\\'\"])", r"\\\1", argument)


def assignment(name: str, value: str) -> str:
    """A line of the file, in double quotes as systemd.exec(5) reads them."""
    quoted = re.sub(r"([\\\"`$])", r"\\\1", value)
    return f'{name}="{quoted}"\n'


def daemon_arguments(arguments: Iterable[str], environment: Mapping[str, str] | None = None) -> str:
    """The file's text: ``ARGS``, of which every argument arrives as it is here, and further variables.

    Empty arguments are left out.
    """
    lines = [assignment("ARGS", " ".join(as_one_word(argument) for argument in arguments if argument))]
    lines += [assignment(name, str(value)) for name, value in (environment or {}).items()]
    return "# Made by deploy; changes made here are undone by the next run.\n" + "".join(lines)


class FilterModule:
    """Tells Ansible of the filter."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """The filter by its name in templates."""
        return {"daemon_arguments": daemon_arguments}
