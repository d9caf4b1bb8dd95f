"""From a module's result to what a person reads: short, clean, and silent where it was censored."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "the output is hidden (no_log)"
DIED = "the module ended with an exception: "
_LONGEST = 2000
_LAST_LINES = 8
_ITEMS = 3
_EMPTY_PHRASES = frozenset(
    {
        "",
        "non-zero return code",
        "the command exited with a non-zero return code",
        "one or more items failed",
        "all items failed",
        "module failure",
        "module failure: no start of json char found",
        "task failed: module failed: non-zero return code",
    }
)
# What Ansible and mitogen put before the reason.
_NOISE = re.compile(
    r"\A(?:Task failed: |Failed to connect to the host via ssh: |EOF on stream; last \d+ lines received:\s*)+"
)
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def clean(text: object) -> str:
    """Text without escape sequences, control characters and halves of surrogate pairs; lines are kept."""
    plain = _ESCAPES.sub("", str(text).replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROLS.sub("", plain).encode("utf-8", "replace").decode()


def one_line(text: object) -> str:
    """Clean text on a single line."""
    return " ".join(clean(text).split())


def shown_message(result: Mapping[str, Any]) -> str:
    """What a task that went well wants to be read: the message of a debug task, else nothing."""
    if not result.get("_ansible_verbose_always"):
        return ""
    shown = {name: value for name, value in result.items() if not name.startswith("_") and name != "changed"}
    return _shorten(shown.get("msg", "") if "msg" in shown else shown or "")


def failure_message(result: Mapping[str, Any]) -> str:
    """Why a task failed: the module's words, else its return code, command and last lines of output."""
    if "censored" in result:
        return HIDDEN
    items = result.get("results")
    failed = [item for item in items if _failed(item)] if isinstance(items, list) else []
    if failed:
        lines = [f"{_item(item)}{failure_message(item)}" for item in failed[:_ITEMS]]
        if len(failed) > _ITEMS:
            lines.append(f"and {len(failed) - _ITEMS} items more")
        return _shorten("\n".join(lines))
    return _shorten("\n".join(part for part in _reasons(result) if part) or "no message was given")


def _failed(item: object) -> bool:
    """Since 2.21 Ansible says of an item of a loop no more than by its exception that it failed."""
    signs = ("failed", "unreachable", "exception")
    return isinstance(item, Mapping) and any(item.get(sign) for sign in signs)


def _item(item: Mapping[str, Any]) -> str:
    label = one_line(item.get("_ansible_item_label", item.get("item", "")))
    return f"{label[:80]}: " if label else ""


def _reasons(result: Mapping[str, Any]) -> list[str]:
    if death := _death(result):
        return [death]
    said = _NOISE.sub("", clean(result.get("msg") or "")).strip()
    has_words = said.rstrip(".").lower() not in _EMPTY_PHRASES and not said.startswith("MODULE FAILURE")
    reasons = [said] if has_words else []
    if result.get("assertion"):
        reasons.append(f"not true: {one_line(result['assertion'])}")
    if not has_words:
        if result.get("rc") is not None:
            reasons.append(f"return code {result['rc']}{_command(result)}")
        reasons.append(next((tail for name in _OUTPUTS if (tail := _tail(result, name))), ""))
    elif result.get("rc") and (tail := _tail(result, "stderr")) not in said:
        reasons.append(tail)
    return reasons


def _death(result: Mapping[str, Any]) -> str:
    """Where and why a module broke instead of answering: its exception without the way there."""
    for name in _PYTHONS_WORDS:
        _, is_there, told = clean(result.get(name) or "").rpartition(_TRACEBACK)
        if is_there:
            lines = [line for line in told.splitlines() if line.strip()]
            raised = next((line for line in lines if not line.startswith(" ")), "nothing said why")
            places = [match for line in lines if (match := _PLACE.match(line))]
            where = f" ({places[-1]['file']}:{places[-1]['line']})" if places else ""
            return f"{DIED}{one_line(raised)}{where}"
    return ""


_TRACEBACK = "Traceback (most recent call last):\n"
_PLACE = re.compile(r'\s+File "(?:.*/)?(?P<file>[^"/]+)", line (?P<line>\d+)')
# Where Ansible and mitogen keep what Python said of the module itself, and not of a program that it ran.
_PYTHONS_WORDS = ("module_stderr", "module_stdout", "exception")
_OUTPUTS = ("stderr", "module_stderr", "stdout", "module_stdout", "exception", "reason")


def _tail(result: Mapping[str, Any], name: str) -> str:
    text = clean(result.get(name) or "").strip()
    return "" if text == "(traceback unavailable)" else "\n".join(text.splitlines()[-_LAST_LINES:])


def _command(result: Mapping[str, Any]) -> str:
    command = result.get("cmd")
    words = " ".join(str(word) for word in command) if isinstance(command, list) else str(command or "")
    return f" from: {one_line(words)[:200]}" if words else ""


def _shorten(text: object) -> str:
    plain = clean(text).strip()
    if len(plain) <= _LONGEST:
        return plain
    half = _LONGEST // 2
    return f"{plain[:half]}\n[... {len(plain) - 2 * half} characters left out ...]\n{plain[-half:]}"
