"""The text of a program that is sent to a host: modules, of which each may import those before it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SHARED = "host_commands"
_BEFORE = {
    "drains": ("drain_ledger", "slurm_saves"),
    "on_departed": ("job_steps",),
    "remedies": ("job_steps",),
}
"""What a program imports besides."""
_PROGRAM = """\
import json, sys, types
for name, text in {texts!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
sys.modules[{main!r}].main({verb!r}, json.loads({arguments!r}))
"""


def sources(name: str) -> dict[str, Path]:
    """The modules of one of this package's programs, by the names by which they import each other."""
    names = (_SHARED, *_BEFORE.get(name, ()), name)
    return {f"{__package__}.{each}": Path(__file__).with_name(f"{each}.py") for each in names}


def program(modules: Mapping[str, Path], verb: str, arguments: Mapping[str, Any]) -> str:
    """The program whose last module does the verb; the arguments arrive as JSON has them."""
    # Importing them would take longer than reading them.
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules.items()}
    return _PROGRAM.format(texts=texts, main=[*texts][-1], verb=verb, arguments=json.dumps(arguments))
