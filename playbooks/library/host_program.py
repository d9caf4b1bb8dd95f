#!/usr/bin/python
"""Ansible module: runs a program of deploy's on a host and hands its answer over."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import IO, Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: host_program
short_description: Runs a program of deploy's on a host and hands its answer over
description:
  - The program is Python's text for the standard library alone. It is passed on standard input, so nothing is
    left on the host, and its standard input stays open for as long as somebody waits for the answer.
options:
  program:
    description: The text.
    type: str
    required: true
  function:
    description: Which of its functions is called; it returns what JSON can say.
    type: str
    required: true
  argument:
    description: The function's argument.
    type: dict
    default: {}
  secrets:
    description: What of the argument nobody may read in a log; the function finds it below C(secrets) there.
    type: dict
    default: {}
  user:
    description: As whom it runs, in a login shell; left out, as root.
    type: str
  seconds:
    description: For how long one waits for the answer.
    type: int
    default: 60
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_answer:
  description: What the function returned.
  type: dict
  returned: always
"""

_READ = "import sys; exec(compile(sys.stdin.buffer.read(int(sys.argv[1])), 'deploy', 'exec'))"


def main() -> None:
    """Run it once."""
    arguments: dict[str, Any] = {
        "program": {"type": "str", "required": True},
        "function": {"type": "str", "required": True},
        "argument": {"type": "dict", "default": {}},
        "secrets": {"type": "dict", "default": {}, "no_log": True},
        "user": {"type": "str"},
        "seconds": {"type": "int", "default": 60},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    argument = dict(module.params["argument"])
    if module.params["secrets"]:
        argument["secrets"] = module.params["secrets"]
    text = _program(module.params["program"], module.params["function"], argument)
    command = [sys.executable or "/usr/bin/python3", "-I", "-c", _READ, str(len(text))]
    if module.params["user"]:
        # A login shell's python3 may be a user's module; the system's is everywhere. su, unlike
        # runuser, takes /etc/environment, where older clients of Slurm find their controller.
        command[0] = "/usr/bin/python3"
        command = ["su", "--login", module.params["user"], "--command", shlex.join(command)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err, cwd="/")
        except OSError as problem:
            module.fail_json(msg=f"{command[0]}: {problem.strerror}")
        try:
            _send(process, text)
            process.wait(module.params["seconds"])
        except subprocess.TimeoutExpired:
            module.fail_json(msg=f"no answer within {module.params['seconds']} s")
        finally:
            # It notices that nobody waits any more, and cleans up.
            with suppress(BrokenPipeError):
                process.stdin.close()
        said, complaints = _text(out), _text(err)
    try:
        answer = json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError):
        lines = complaints.strip().splitlines()
        module.fail_json(msg=lines[-1] if lines else "the program gave no answer")
    module.exit_json(changed=False, deploy_answer=answer)


def _program(text: str, function: str, argument: dict[str, Any]) -> bytes:
    call = f"{function}(json.loads({json.dumps(argument)!r}))"
    return f"{text}\n\nimport json\nprint(json.dumps({call}))\n".encode()


def _send(process: subprocess.Popen[bytes], text: bytes) -> None:
    try:
        process.stdin.write(text)
        process.stdin.flush()
    except BrokenPipeError:
        pass  # It ended already; what it says tells why.


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


if __name__ == "__main__":
    main()
