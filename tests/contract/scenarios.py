"""Whether the tests of a Molecule scenario can fail: each has an assertion that depends on something."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.contract.content import read_yaml, strings


def toothless(scenario: Path) -> Iterator[str]:
    """What is wrong with a scenario's verify step."""
    if not (scenario / "molecule.yml").exists() or not (scenario / "converge.yml").exists():
        yield f"{scenario}: there is no molecule.yml with a converge.yml"
    functions = [
        (path, node)
        for path in sorted(scenario.glob("tests/test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    playbook = scenario / "verify.yml"
    if not functions and not playbook.exists():
        yield f"{scenario}: verifies nothing"
    for path, function in functions:
        if not any(_can_fail(node) for node in ast.walk(function)):
            yield f"{path}:{function.lineno}: {function.name} cannot fail"
        if any(
            "skip" in ast.unparse(decorator) or "xfail" in ast.unparse(decorator)
            for decorator in _decorators(function)
        ):
            yield f"{path}:{function.lineno}: {function.name} is skipped or may fail"
    if playbook.exists():
        conditions = [condition for play in read_yaml(playbook) for condition in _conditions(play)]
        if not conditions:
            yield f"{playbook}: asserts nothing"
        yield from (
            f"{playbook}: {text!r} is always true" for text in conditions if text.lower() in {"true", "1"}
        )


def _decorators(function: ast.FunctionDef) -> list[ast.expr]:
    return function.decorator_list


def _can_fail(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return any(isinstance(inner, ast.Name | ast.Call) for inner in ast.walk(node.test))
    # The fixture "on" fails the test when the command does, unless it is told not to check.
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {"pytest.raises", "pytest.fail"}


def _conditions(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "that":
                yield from strings([str(item) for item in inner] if isinstance(inner, list) else [str(inner)])
            else:
                yield from _conditions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _conditions(inner)
