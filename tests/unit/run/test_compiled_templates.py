from pathlib import Path

import pytest
from ansible._internal._templating._jinja_bits import AnsibleEnvironment
from ansible.errors import AnsibleError
from ansible.template import Templar, trust_as_template

from deploy.run import compiled_templates
from deploy.run.compiled_templates import keep_compiled_templates


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that were compiled since, each time it was done."""
    sources: list[str] = []
    original = AnsibleEnvironment.compile

    def compile_it(environment: AnsibleEnvironment, source: str) -> object:
        sources.append(source)
        return original(environment, source)

    monkeypatch.setattr(AnsibleEnvironment, "compile", original)  # so that it is put back
    monkeypatch.setattr(compiled_templates, "_compile", compile_it)
    keep_compiled_templates(tmp_path / "templates")
    return sources


def rendered(source: str, *, escape: bool = True, overrides: dict[str, str] | None = None) -> object:
    """As each of Ansible's processes does it, from nothing."""
    templar = Templar(variables={"word": "x"})
    return templar.template(trust_as_template(source), escape_backslashes=escape, overrides=overrides)


def test_the_code_of_a_template_is_made_once(tmp_path: Path, compiled: list[str]) -> None:
    assert [rendered("a {{ word }}") for _ in range(3)] == ["a x"] * 3
    assert compiled == ["a {{ word }}"]
    (kept,) = (tmp_path / "templates").iterdir()
    assert (kept.parent.stat().st_mode & 0o777, kept.stat().st_mode & 0o077) == (0o700, 0)


def test_code_of_another_python_is_made_again(tmp_path: Path, compiled: list[str]) -> None:
    rendered("a {{ word }}")
    (kept,) = (tmp_path / "templates").iterdir()
    kept.write_bytes(b"another")
    assert rendered("a {{ word }}") == "a x"
    assert len(compiled) == 2


def test_the_same_text_read_otherwise_is_another_template(compiled: list[str]) -> None:
    text = "{{ word }} [[ word ]] {{ 'a\\nb' }}"
    brackets = {"variable_start_string": "[[", "variable_end_string": "]]"}
    for _ in range(2):
        assert rendered(text) == "x [[ word ]] a\\nb"
        assert rendered(text, escape=False) == "x [[ word ]] a\nb"
        assert rendered(text, overrides=brackets) == "{{ word }} x {{ 'a\\nb' }}"
    assert len(compiled) == 3


def test_what_is_random_is_so_every_time(compiled: list[str]) -> None:
    source = "{{ 1000000000 | random }}"
    assert len({rendered(source) for _ in range(5)}) > 1
    assert compiled == [source]


def test_what_is_no_template_is_an_error_each_time(compiled: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(AnsibleError, match="Syntax error in template"):
            rendered("{{ word")
    assert len(compiled) == 2


@pytest.mark.parametrize(
    ("part", "other"),
    [("_compile", lambda environment: environment), ("_TemplateCompileContext", object)],
)
def test_another_way_of_compiling_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, other: object
) -> None:
    before = AnsibleEnvironment.compile
    monkeypatch.setattr(compiled_templates, part, other)
    with pytest.raises((TypeError, AttributeError)):
        keep_compiled_templates(tmp_path / "templates")
    assert AnsibleEnvironment.compile is before
    assert not (tmp_path / "templates").exists()
