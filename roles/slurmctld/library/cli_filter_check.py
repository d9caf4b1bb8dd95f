#!/usr/bin/python
"""Ansible module: whether a site's cli_filter.lua can be loaded, and does with examples what is expected."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: cli_filter_check
short_description: Whether cli_filter.lua can be loaded, and does with examples what is expected
description:
  - Has the installed sbatch, srun and salloc load the script, as the user nobody and with a slurm.conf that
    knows no cluster, and gives them examples of what users type. They end there; nothing is submitted.
  - With a script that cannot be loaded, or that does not come to a host, every sbatch, srun and salloc fails.
options:
  script:
    description: The text of cli_filter.lua. Nothing is checked where it is empty.
    type: str
    required: true
  examples:
    description: What users type and what becomes of it, as C(slurmctld_cli_filter_examples) has it.
    type: list
    elements: dict
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
tried:
  description: How many examples came out as expected.
  type: int
  returned: always
"""

_SECONDS = "20"
_TIMED_OUT = 124
_NAME = "cli_filter.lua"
_COMMANDS = ("sbatch", "srun", "salloc")
# Of the network for documentation (RFC 5737): the commands end before they would ask it.
_CONF = """
ClusterName=trial
SlurmctldHost=trial(192.0.2.1)
AuthType=auth/munge
CliFilterPlugins=lua
PlugStackConfig={place}/plugstack.conf
"""
# A script may return at its end, behind which nothing could stand.
_BEFORE = "local __loaded = (function() "
_BEHIND = """
end)()
local setup, submit = slurm_cli_setup_defaults, slurm_cli_pre_submit
local function tell(what, words)
    io.stderr:write("\\1", what, "\\1", table.concat(words, "\\1"), "\\2\\n")
end
if type(setup) == "function" and type(submit) == "function" and type(slurm_cli_post_submit) == "function" then
    function slurm_cli_setup_defaults(options, early)
        local ran, code = pcall(setup, options, early)
        if not ran then
            tell("broken", {tostring(code)})
            return slurm.ERROR
        end
        if (tonumber(code) or 0) ~= 0 then tell("came", {tostring(code)}) end
        return code
    end
    function slurm_cli_pre_submit(options, offset)
        local ran, code = pcall(submit, options, offset)
        if ran then
            local words = {tostring(code)}
            for name in string.gmatch(os.getenv("DEPLOY_FIELDS") or "", "%S+") do
                table.insert(words, tostring(options[name]))
            end
            tell("came", words)
        else
            tell("broken", {tostring(code)})
        end
        return slurm.ERROR
    end
end
return __loaded
"""
_TOLD = re.compile("\1(came|broken)\1(.*?)\2\n?", re.DOTALL)
_ENDS = re.compile(r".*cli_filter plugin terminated with error.*\n?")
_LOADED_FROM = re.compile(r"\S*/cli_filter\.lua(?=:)")


def trial_of(script: str) -> str:
    """The script with what tells how it decides, and has the command end there. Lines keep their numbers."""
    return f"{_BEFORE}{script}{_BEHIND}"


def words_of(example: Mapping[str, Any]) -> list[str]:
    """The command of an example, with something to run."""
    command, options = example.get("command") or "sbatch", shlex.split(example.get("options") or "")
    if command == "sbatch":
        return [command, "--wrap=true", *options]
    return [command, *options, *(["true"] if command == "srun" else [])]


def complaints(example: Mapping[str, Any], said: str) -> Iterator[str]:
    """What is wrong with what a command said, for an example; without an expectation it has but to run."""
    named = f"example {example['name']}: " if "expect" in example else f"{example['command']}: "
    told = _TOLD.findall(said)
    words = _ENDS.sub("", _TOLD.sub("", said)).strip()
    if not told:
        yield f"{named}{_LOADED_FROM.sub(_NAME, words)[-600:] or 'it ended without a word'}"
        return
    what, answer = told[-1]
    code, *fields = answer.split("\1")
    if what == "broken":
        yield f"{named}{_LOADED_FROM.sub(_NAME, answer)}"
    elif "expect" in example:
        yield from (named + each for each in _differences(example, code, words, fields))


def _differences(example: Mapping[str, Any], code: str, words: str, fields: list[str]) -> Iterator[str]:
    # What is no number Slurm takes for success.
    came = "refused" if re.fullmatch(r"-?\d+(\.\d+)?", code) and float(code) else "accepted"
    if came != example["expect"]:
        of_it = f" ({words})" if words else ""
        yield f"it is {came}{of_it}, and should be {example['expect']}"
    if (wanted := str(example.get("says") or "")) not in words:
        yield f"the user reads {words or 'nothing'!r}, without {wanted!r}"
    # The defaults alone may refuse it, before there are options to compare.
    for (name, value), found in zip((example.get("sets") or {}).items(), fields):  # noqa: B905 - Python 3.9
        if found != str(value):
            yield f"{name} is {found}, and should be {value}"


def _said(module: AnsibleModule, place: Path, example: Mapping[str, Any]) -> str:
    environment = {
        "SLURM_CONF": f"{place}/slurm.conf",
        "DEPLOY_FIELDS": " ".join(example.get("sets") or {}),
        "HOME": "/",
        "LC_ALL": "C.UTF-8",
    }
    try:
        words = words_of(example)
    except ValueError as problem:
        module.fail_json(msg=f"example {example['name']}: {problem} in its options; nothing was changed")
    command = ["timeout", _SECONDS, "runuser", "--user=nobody", "--", *words]
    code, _, err = module.run_command(command, environ_update=environment, cwd="/", data="")
    if code == _TIMED_OUT:
        module.fail_json(
            msg=f"{_NAME} was not tried, so nothing was changed: {shlex.join(words)} does not end within "
            f"{_SECONDS} s"
        )
    return str(err)


def main() -> None:
    """Load, try, compare."""
    arguments: dict[str, Any] = {
        "script": {"type": "str", "required": True},
        "examples": {"type": "list", "elements": "dict", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    script, examples = module.params["script"], module.params["examples"]
    if not script.strip():
        module.exit_json(changed=False, tried=0)
    if missing := [name for name in (*_COMMANDS, "slurmctld") if not module.get_bin_path(name)]:
        # Before its first deployment a controller has none.
        if module.check_mode:
            module.exit_json(changed=False, tried=0)
        module.fail_json(
            msg=f"{_NAME} was not tried, so nothing was changed: there is no {', no '.join(missing)}"
        )
    bare = [{"command": name} for name in _COMMANDS]
    with tempfile.TemporaryDirectory(prefix="cli-filter-check-") as name:
        place = Path(name)
        place.chmod(0o755)
        (place / _NAME).write_text(trial_of(script), encoding="utf-8")
        (place / "slurm.conf").write_text(_CONF.format(place=place).lstrip(), encoding="utf-8")
        (place / "plugstack.conf").write_text("", encoding="utf-8")
        for path in place.iterdir():
            path.chmod(0o644)
        wrong: list[str] = []
        for example in [*bare, *examples]:
            wrong += complaints(example, _said(module, place, example))
            # Where it cannot be loaded all others would say the same.
            if wrong and example is bare[0]:
                break
    if wrong:
        module.fail_json(msg=f"{'; '.join(wrong)}; nothing was changed")
    module.exit_json(changed=False, tried=len(examples))


if __name__ == "__main__":
    main()
