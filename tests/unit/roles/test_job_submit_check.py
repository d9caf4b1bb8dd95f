"""Jobs for a site's job_submit.lua, and what came of them; Molecule's slurmctld has the Lua for it."""

from tests.unit.roles.loading import load_module

module = load_module("roles/slurmctld/library/job_submit_check.py")


def test_values_as_lua_writes_them() -> None:
    assert module.literal({"a": [1, True, None, 2.5], "b": 'say "hi"\n\\ü'}) == (
        '{["a"] = {1, true, nil, 2.5}, ["b"] = "say \\034hi\\034\\010\\092\\195\\188"}'
    )


def test_answers_are_compared_without_lua() -> None:
    examples = [{"name": "a", "expect": "refused", "sets": {"qos": "long"}}]
    good = [[0, ""], [0, ""], [0, "functionfunction"]]
    assert list(module.complaints(examples, [*good, [0, "2000\1no\1long"]])) == []
    assert list(module.complaints(examples, [*good, [0, "0\1\1nil"]])) == [
        "example a: it is accepted, and should be refused",
        "example a: qos is nil, and should be long",
    ]
    assert list(module.complaints(examples, [[0, ""], [3, "line 1"], [0, ""], [2, ""]])) == ["line 1"]
