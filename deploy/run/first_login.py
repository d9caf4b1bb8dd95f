"""The first login on a machine that has no more than ssh and an account: a key, sudo and Python come by it.

The password goes to ssh by SSH_ASKPASS (ssh(1)) from a file that only this user can read, and to sudo by
its standard input: it is in no process list and no environment.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deploy.place import private_place
from deploy.run.ssh import Unanswered

_SECONDS = 600
"""A package list and two packages, at a slow mirror."""
_DID, _PROBLEM = "deploy did: ", "deploy problem: "
_AS_USER = r"""
set -eu
umask 077
key=$1 rule=$2 root=$3
IFS= read -r password
fail() { echo "deploy problem: $*"; exit 1; }
directory=$HOME/.ssh file=$HOME/.ssh/authorized_keys
mkdir -p "$directory" || fail "$HOME/.ssh cannot be made"
if ! grep -qxF -e "$key" "$file" 2>/dev/null; then
  if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then echo >> "$file"; fi
  printf '%s\n' "$key" >> "$file" || fail "$file cannot be written"
  echo "deploy did: let the key in"
fi
if [ "$(id -u)" = 0 ]; then
  exec sh -c "$root" sh - < /dev/null
fi
command -v sudo > /dev/null || fail "sudo is not installed: log in as root for once, with --user root"
if sudo -k -n true 2> /dev/null; then
  exec sudo -n sh -c "$root" sh - < /dev/null
fi
[ -n "$password" ] || fail "sudo asks for a password: type -K"
[ "$rule" = rule ] && rule=$(id -u):$(id -un) || rule=-
printf '%s\n' "$password" | sudo -S -p '' true 2> /dev/null || fail "sudo refuses the password, or $(id -un)"
printf '%s\n' "$password" | sudo -S -p '' sh -c "$root" sh "$rule"
"""
_AS_ROOT = r"""
set -eu
missing=
for program in python3 sudo; do command -v "$program" > /dev/null || missing="$missing $program"; done
if [ -n "$missing" ]; then
  export DEBIAN_FRONTEND=noninteractive
  install() { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; }
  if ! install > /dev/null < /dev/null; then
    echo "deploy problem: apt-get install$missing failed"
    exit 1
  fi
  echo "deploy did: installed$missing"
fi
if [ "$1" != - ]; then
  number=${1%%:*} file=/etc/sudoers.d/deploy-${1%%:*}
  printf '# %s may become root without a password, by deploy bootstrap.\n#%s ALL=(ALL:ALL) NOPASSWD: ALL\n' \
    "${1#*:}" "$number" > "$file.new"
  chmod 0440 "$file.new"
  visudo -cqf "$file.new" || { rm -f "$file.new"; echo "deploy problem: visudo refuses $file"; exit 1; }
  mv "$file.new" "$file"
  echo "deploy did: let it become root without a password"
fi
"""


@dataclass(frozen=True)
class Passwords:
    """Of the account: for ssh, and for sudo."""

    login: str = field(default="", repr=False)
    sudo: str = field(default="", repr=False)


@dataclass(frozen=True)
class Welcome:
    """What was done on a machine; ``problem`` is why it is not ready."""

    did: tuple[str, ...] = ()
    problem: str = ""


def welcome(
    command: Sequence[str], public_key: str, passwords: Passwords, *, has_rule: bool
) -> Welcome | Unanswered:
    """Lets a key in by ``ssh.command``, installs what is missing; with ``has_rule`` sudo asks no more.

    What is there stays as it is. An account that becomes root without a password needs no rule.
    """
    script = ["sh", "-c", _AS_USER, "sh", public_key, "rule" if has_rule else "-", _AS_ROOT]
    with private_place("askpass") as place, private_place("askpass", _for_programs(place)) as beside:
        words = [*(_asking(command[:-1]) if passwords.login else command[:-1]), shlex.join(script)]
        try:
            done = subprocess.run(
                words,
                input=f"{passwords.sudo}\n",
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env=os.environ | _askpass(place, beside, passwords.login),
                timeout=_SECONDS,
                check=False,
            )
        except OSError as problem:
            return Unanswered(f"{words[0]}: {problem.strerror}")
        except subprocess.TimeoutExpired:
            return Unanswered(f"it was not ready within {_SECONDS} s")
    lines = done.stdout.splitlines()
    did = tuple(line.removeprefix(_DID) for line in lines if line.startswith(_DID))
    problems = [line.removeprefix(_PROBLEM) for line in lines if line.startswith(_PROBLEM)]
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    if done.returncode and not did and not problems:
        return Unanswered(said[-1])
    return Welcome(did, (problems or said)[-1] if done.returncode else "")


def public_key(command: Sequence[str], settings: Mapping[str, Sequence[str]]) -> str | None:
    """The public half of the key that ``ssh.command`` would log in with; None where there is none.

    ``settings`` is what ``ssh -G`` says. Without a file the agent's first key is taken.
    """
    named = [command[place + 1] for place, word in enumerate(command[:-1]) if word == "-i"]
    for name in named or settings.get("identityfile", ()):
        private = Path(name).expanduser()
        public = private.with_name(f"{private.name}.pub")
        if public.is_file():
            return public.read_text(encoding="utf-8").strip().splitlines()[0]
        # One with a passphrase does not tell.
        if private.is_file() and (key := _first_line("ssh-keygen", "-y", "-P", "", "-f", str(private))):
            return key
    return None if named else _first_line("ssh-add", "-L")


def _first_line(*command: str) -> str | None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), None) if done.returncode == 0 else None


def _asking(command: Sequence[str]) -> list[str]:
    """With a password where no key is let in; of options the first one counts (ssh_config(5))."""
    options = ("BatchMode=no", "NumberOfPasswordPrompts=1", "ControlPath=none")
    start = command.index("-T")
    return [*command[:start], *(f"-o{option}" for option in options), *command[start:]]


def _for_programs(place: Path) -> Path:
    """Where a program can be executed: often not in memory, and it holds no secret."""
    places = (place.parent, Path(tempfile.gettempdir()), Path.home())
    return next((each for each in places if not os.statvfs(each).f_flag & os.ST_NOEXEC), place.parent)


def _askpass(place: Path, beside: Path, password: str) -> dict[str, str]:
    """The environment in which ssh takes the password."""
    secret, program = place / "password", beside / "askpass"
    secret.touch(mode=0o600)
    secret.write_text(f"{password}\n", encoding="utf-8")
    program.touch(mode=0o700)
    program.write_text(f"#!/bin/sh\nexec cat {shlex.quote(str(secret))}\n", encoding="utf-8")
    return {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force"}
