"""Templates that are compiled once a run.

Ansible does each task on each host in a process of its own, and each of them would compile its templates
anew: a fifth of what they compute. The code that one of them makes is what all others use.
"""

from dataclasses import fields
from inspect import signature
from pathlib import Path
from types import CodeType
from typing import Any

from ansible._internal._templating._jinja_bits import (
    AnsibleEnvironment,
    TemplateOverrides,
    _TemplateCompileContext,
)
from jinja2 import FileSystemBytecodeCache

_compile: Any = AnsibleEnvironment.compile


def keep_compiled_templates(directory: Path) -> None:
    """From now on, in this process and in those that it forks; ``directory`` is made, closed to others.

    Raises an exception, and changes nothing, where Ansible does not compile templates as it is known here.

    The code is the same for every host: in Ansible's environments nothing is computed while compiling, not
    even a filter of a constant (jinja2/nodes.py: none is constant in a sandbox).
    """
    _refuse_others()
    directory.mkdir(mode=0o700)
    cache = FileSystemBytecodeCache(str(directory), "%s")

    def compile_once(
        environment: Any,  # noqa: ANN401 - Ansible has no types
        source: Any,  # noqa: ANN401
        *arguments: Any,  # noqa: ANN401
        **options: Any,  # noqa: ANN401
    ) -> str | CodeType | None:
        if not isinstance(source, str) or arguments or options:
            code: str | CodeType = _compile(environment, source, *arguments, **options)
            return code
        bucket = cache.get_bucket(environment, _name(environment, source), None, source)
        if bucket.code is None:
            bucket.code = _compile(environment, source)
            cache.set_bucket(bucket)
        return bucket.code

    AnsibleEnvironment.compile = compile_once


def _refuse_others() -> None:
    environment = AnsibleEnvironment()
    signature(_compile).bind(environment, "")
    _name(environment, "")
    if "escape_backslashes" not in _TemplateCompileContext.__annotations__:
        raise AttributeError(name="escape_backslashes", obj=_TemplateCompileContext)


def _name(environment: Any, source: str) -> str:  # noqa: ANN401
    """Of the code: the source, and everything else that decides it."""
    context = _TemplateCompileContext.current(optional=True)
    settings = [
        type(environment).__name__,
        bool(context and context.escape_backslashes),
        *(getattr(environment, field.name) for field in fields(TemplateOverrides)),
    ]
    return f"{settings}{source}"
