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
