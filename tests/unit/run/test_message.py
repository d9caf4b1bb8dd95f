from typing import Any

import pytest

from deploy.run.message import HIDDEN, clean, failure_message

_NO_JSON = "Module result deserialization failed: No start of json char found"
_TRACEBACK = """Traceback (most recent call last):
  File "master:/x/ansible_mitogen/runner.py", line 1062, in _run
    self._run_code(code, mod)
  File "master:/x/library/dies.py", line 5, in main
FileNotFoundError: [Errno 2] No such file: '/x'
"""


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"msg": "No such package: x"}, "No such package: x"),
        ({"msg": "Task failed: Module failed: boom"}, "Module failed: boom"),
        (
            {"msg": "non-zero return code", "rc": 3, "cmd": ["a", "b c"], "stderr": "1\n2\n", "stdout": "o"},
            "return code 3 from: a b c\n1\n2",
        ),
        ({"msg": "non-zero return code", "rc": 3, "stdout": "only this"}, "return code 3\nonly this"),
        ({"msg": "MODULE FAILURE\nSee stdout", "rc": 1, "module_stderr": "Trace\nValueError: x"},
         "return code 1\nTrace\nValueError: x"),
        (
            {"msg": _NO_JSON, "rc": 1, "module_stderr": _TRACEBACK, "module_stdout": ""},
            "the module ended with an exception: FileNotFoundError: [Errno 2] No such file: '/x' (dies.py:5)",
        ),
        ({"msg": "MODULE FAILURE\nSee stdout", "rc": 1, "module_stdout": f"warned\n{_TRACEBACK}"},
         "the module ended with an exception: FileNotFoundError: [Errno 2] No such file: '/x' (dies.py:5)"),
        ({"msg": _NO_JSON, "rc": 1, "module_stderr": "sh: 1: python3: not found"}, _NO_JSON),
        # A program that a module ran is not the module.
        ({"msg": "non-zero return code", "rc": 1, "stderr": _TRACEBACK.strip()},
         f"return code 1\n{_TRACEBACK.strip()}"),
        ({"msg": "apt failed", "rc": 100, "stderr": "E: broken"}, "apt failed\nE: broken"),
        ({"msg": "apt failed: E: broken", "rc": 100, "stderr": "E: broken"}, "apt failed: E: broken"),
        ({"msg": "Assertion failed", "assertion": "a == b"}, "Assertion failed\nnot true: a == b"),
        ({"msg": "", "exception": "(traceback unavailable)"}, "no message was given"),
        ({}, "no message was given"),
        ({"msg": None}, "no message was given"),
        ({"censored": "x", "msg": "secret"}, HIDDEN),
        (
            {"msg": "Task failed: EOF on stream; last 100 lines received:\nssh: connect: refused"},
            "ssh: connect: refused",
        ),
    ],
)  # fmt: skip
def test_why(result: dict[str, Any], message: str) -> None:
    assert failure_message(result) == message


def test_an_item_whose_exception_alone_says_that_it_failed_is_named() -> None:
    """As since ansible-core 2.21."""
    said = "The command exited with a non-zero return code."
    good, bad = (
        {"item": "a", "rc": 0},
        {"item": "b", "rc": 1, "exception": "(traceback unavailable)", "cmd": ["x"]},
    )
    result = {"msg": "One or more items failed", "results": [good, {**bad, "msg": said}]}
    assert failure_message(result) == "b: return code 1 from: x"


def test_items_are_named_and_counted() -> None:
    items = [{"item": n, "failed": n > 0, "msg": f"no {n}"} for n in range(6)]
    assert failure_message({"msg": "One or more items failed", "results": items}) == (
        "1: no 1\n2: no 2\n3: no 3\nand 2 items more"
    )


def test_a_hidden_item_stays_hidden() -> None:
    item = {"censored": "x", "failed": True, "msg": "secret"}
    assert failure_message({"results": [item]}) == HIDDEN


def test_only_the_last_lines_of_output() -> None:
    output = "\n".join(str(number) for number in range(100))
    assert failure_message({"rc": 1, "stderr": output}).splitlines() == [
        "return code 1",
        *map(str, range(92, 100)),
    ]


def test_very_long_messages_lose_their_middle() -> None:
    message = failure_message({"msg": "a" * 5000 + "end"})
    assert len(message) < 2100
    assert "3003 characters left out" in message
    assert message.endswith("end")


def test_clean_keeps_lines_and_tabs() -> None:
    assert clean("a\r\nb\rc\td\x0be") == "a\nb\nc\tde"
