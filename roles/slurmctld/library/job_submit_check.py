#!/usr/bin/python
"""Ansible module: whether a site's job_submit.lua can be loaded, and does with examples what is expected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: job_submit_check
short_description: Whether job_submit.lua can be loaded, and does with examples what is expected
description:
  - Loads the script into the Lua that Slurm uses, as the user slurm and within a few seconds, and gives it
    examples of jobs. What Slurm offers there (constants, logs, lists of jobs and reservations) are stand-ins.
  - With a script that cannot be loaded Slurm refuses every job.
options:
  script:
    description: The text of job_submit.lua. Nothing is checked where it is empty.
    type: str
    required: true
  examples:
    description: Jobs and what becomes of them, as the role's C(slurmctld_job_submit_examples) has them.
    type: list
    elements: dict
    default: []
  partitions:
    description: The names of the partitions.
    type: list
    elements: str
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
_NAME = "job_submit.lua"
_STUBS = """
__said = {}
local function take(text) table.insert(__said, tostring(text)) end
local function format(text, ...) take(string.format(text, ...)) end
slurm = setmetatable({
  SUCCESS = 0, ERROR = -1, FAILURE = -1,
  NO_VAL = 4294967294, NO_VAL8 = 254, NO_VAL16 = 65534, NO_VAL64 = 18446744073709551614,
  INFINITE = 4294967295, INFINITE8 = 255, INFINITE16 = 65535, INFINITE64 = 18446744073709551615,
  jobs = {}, reservations = {},
  log_user = format, log_info = function() end, log_error = function() end, log_debug = function() end,
  log_debug2 = function() end, log_debug3 = function() end, log_debug4 = function() end,
  log_verbose = function() end, user_msg = format,
}, {__index = function(_, name)
  -- Errors are numbers from 2000 on, whichever; flags are bits.
  if string.find(name, "^ESLURM") then return 2000 end
  if string.find(name, "^[A-Z_0-9]+$") then return 0 end
end})
__partitions = {}
"""
_ONE = """
local job = {job}
job.script = job.script or "#!/bin/sh\\n"
__said = {{}}
local code = slurm_job_submit(job, __partitions, {uid})
local fields = {{ {fields} }}
local answer = {{ tostring(code), table.concat(__said, " ") }}
for _, name in ipairs(fields) do table.insert(answer, tostring(job[name])) end
return table.concat(answer, "\\1")
"""
# With Lua 5.4 two of the functions are macros over others, with more arguments.
PROGRAM = """
import ctypes, json, sys
asked = json.load(sys.stdin)
lua = None
for name in ("liblua5.1.so.0", "liblua5.4.so.0", "liblua5.3.so.0", "liblua5.2.so.0"):
    try:
        lua = ctypes.CDLL(name)
        break
    except OSError:
        pass
if lua is None:
    print(json.dumps({"none": True}))
    sys.exit(0)
pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
lua.luaL_newstate.restype = pointer
lua.lua_tolstring.restype, lua.lua_tolstring.argtypes = text, [pointer, ctypes.c_int, ctypes.POINTER(size)]
lua.luaL_openlibs.argtypes = [pointer]
state = lua.luaL_newstate()
lua.luaL_openlibs(state)

def load(chunk, name):
    told = (pointer(state), text(chunk.encode()), size(len(chunk.encode())), text(name.encode()))
    if hasattr(lua, "luaL_loadbuffer"):
        return lua.luaL_loadbuffer(*told)
    return lua.luaL_loadbufferx(*told, pointer(None))

def call():
    told = (pointer(state), ctypes.c_int(0), ctypes.c_int(1), ctypes.c_int(0))
    if hasattr(lua, "lua_pcall"):
        return lua.lua_pcall(*told)
    return lua.lua_pcallk(*told, ctypes.c_ssize_t(0), pointer(None))

answers = []
for name, chunk in asked:
    code = load(chunk, name) or call()
    said = lua.lua_tolstring(state, -1, None)
    answers.append([code, (said or b"").decode(errors="replace")])
print(json.dumps({"answers": answers}))
"""


def literal(value: object) -> str:
    """A value of JSON as Lua writes it."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"[{literal(key)}] = {literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "{" + ", ".join(map(literal, value)) + "}"
    return '"' + "".join(_letter(byte) for byte in str(value).encode()) + '"'


def _letter(byte: int) -> str:
    letter = chr(byte)
    return letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else f"\\{byte:03d}"


def chunks(script: str, examples: list[dict[str, Any]], partitions: list[str]) -> list[tuple[str, str]]:
    """What Lua is given, one after the other: by name, where an ``@`` begins that of a file."""
    named = "\n".join(f"__partitions[{literal(name)}] = {{name = {literal(name)}}}" for name in partitions)
    both = "return tostring(type(slurm_job_submit)) .. tostring(type(slurm_job_modify))"
    jobs = [
        _ONE.format(
            job=literal(example.get("job") or {}),
            uid=int(example.get("uid") or 1000),
            fields=", ".join(literal(name) for name in example.get("sets") or {}),
        )
        for example in examples
    ]
    return [
        ("=stubs", _STUBS + named),
        (f"@{_NAME}", script),
        ("=functions", both),
        *(("=example", job) for job in jobs),
    ]


def complaints(examples: list[dict[str, Any]], answers: list[list[Any]]) -> Iterator[str]:
    """What is wrong with the script itself, else with what became of examples."""
    (_, (loads, why), (_, kinds), *jobs) = answers
    if loads:
        yield why
        return
    if kinds != "functionfunction":
        yield f"{_NAME} defines no function slurm_job_submit, or no slurm_job_modify: Slurm wants both"
        return
    for example, (failed, said) in zip(examples, jobs, strict=True):
        if failed:
            yield f"example {example['name']}: {said}"
            continue
        code, words, *fields = said.split("\1")
        yield from _differences(example, code, words, fields)


def _differences(example: Mapping[str, Any], code: str, words: str, fields: list[str]) -> Iterator[str]:
    came = "accepted" if code in {"0", "0.0"} else "refused"
    of_it = f" ({words})" if words else ""
    if came != example["expect"]:
        yield f"example {example['name']}: it is {came}{of_it}, and should be {example['expect']}"
    if (wanted := str(example.get("says") or "")) not in words:
        yield f"example {example['name']}: the user reads {words or 'nothing'!r}, without {wanted!r}"
    for (name, value), found in zip((example.get("sets") or {}).items(), fields, strict=True):
        if found.removesuffix(".0") != literal(value).strip('"'):
            yield f"example {example['name']}: {name} is {found}, and should be {value}"


def main() -> None:
    """Load, try, compare."""
    arguments: dict[str, Any] = {
        "script": {"type": "str", "required": True},
        "examples": {"type": "list", "elements": "dict", "default": []},
        "partitions": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    script, examples = module.params["script"], module.params["examples"]
    if not script.strip():
        module.exit_json(changed=False, tried=0)
    asked = json.dumps(chunks(script, examples, module.params["partitions"]))
    command = ["timeout", _SECONDS, "runuser", "--user=slurm", "--", "/usr/bin/python3", "-I", "-c", PROGRAM]
    code, out, err = module.run_command(command, data=asked)
    if code != 0:
        # Before its first deployment a controller has no user slurm, and no Lua.
        if module.check_mode and "slurm" in err and "does not exist" in err:
            module.exit_json(changed=False, tried=0)
        why = f"it does not end within {_SECONDS} s" if code == 124 else (err or out).strip()[-600:]  # noqa: PLR2004
        module.fail_json(msg=f"{_NAME} was not tried, so nothing was changed: {why}")
    said = json.loads(out)
    if said.get("none"):
        if module.check_mode:
            module.exit_json(changed=False, tried=0)
        module.fail_json(msg=f"{_NAME} was not tried: this host has no Lua for Slurm, so it would not work")
    if wrong := list(complaints(examples, said["answers"])):
        module.fail_json(msg=f"{'; '.join(wrong)}; nothing was changed")
    module.exit_json(changed=False, tried=len(examples))


if __name__ == "__main__":
    main()
