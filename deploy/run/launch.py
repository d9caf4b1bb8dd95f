"""Starts Ansible as a process that dies with deploy.

ansible-runner starts its child on a terminal of its own and has it ignore the hang-up that the end of deploy
causes there. Taking the signal's default action back makes a killed deploy take Ansible along.
"""

import os
import signal
import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """``arguments``: where to write the process id, then the command that replaces this process."""
    pid_file, *command = arguments
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    Path(pid_file).write_text(str(os.getpid()), encoding="ascii")
    os.execv(command[0], command)  # noqa: S606 - an argument list, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
