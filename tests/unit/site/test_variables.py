from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.site.variables import read_extra_variables


def test_every_form_that_ansible_takes(tmp_path: Path) -> None:
    file = tmp_path / "more.yml"
    file.write_text("c: [1, 2]\n")
    assert read_extra_variables(["a=1 b='two words'", '{"d": {"e": true}}', f"@{file}", "a=3"]) == {
        "a": "3",
        "b": "two words",
        "c": [1, 2],
        "d": {"e": True},
    }


@pytest.mark.parametrize("text", ["novalue", "{", "[1]", "@/no/such/file.yml", "a='unclosed"])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(DeployError) as problem:
        read_extra_variables([text])
    assert problem.value.findings[0].reference == "invalid-extra-variables"


def test_a_value_is_not_repeated_in_the_message() -> None:
    with pytest.raises(DeployError) as problem:
        read_extra_variables(["password=5ecr3t stray"])
    assert "5ecr3t" not in str(problem.value)


def test_aliases_of_aliases_are_not_expanded(tmp_path: Path) -> None:
    file = tmp_path / "more.yml"
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]\n" for n in range(12))
    file.write_text(levels)
    with pytest.raises(DeployError) as problem:
        read_extra_variables([f"@{file}"])
    assert "its aliases (*NAME) come to more than 100,000 values" in str(problem.value)
