"""One question to many hosts at once over plain ssh, as the inventory says they are reached."""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.run.keepalive import keepalive
from deploy.run.sent_program import program, sources
from deploy.run.settings import default_forks
from deploy.site.inventory import Host

_CONNECTION_SECONDS = 10
_SECONDS = 60
_MARK = "deploy:"
_AS_ROOT = 'if [ "$(id -u)" = 0 ]; then exec {python}; else exec sudo -n {python}; fi'
# ssh's option; the variables of a host that say it, the first of them that is there, as for Ansible; else the
# environment, where neither --private-key nor --user says it.
_OPTIONS = (
    ("-i", ("ansible_ssh_private_key_file", "ansible_private_key_file"), "ANSIBLE_PRIVATE_KEY_FILE"),
    ("-l", ("ansible_ssh_user", "ansible_user"), "ANSIBLE_REMOTE_USER"),
    ("-p", ("ansible_ssh_port", "ansible_port"), "ANSIBLE_REMOTE_PORT"),
)
_HOST = ("ansible_ssh_host", "ansible_host")
_CHECKS_KEYS = ("ansible_ssh_host_key_checking", "ansible_host_key_checking")
# Further words for ssh; in capitals they are what the environment says.
_ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
_BY_ANSIBLE_ONLY = (
    "ansible_password",
    "ansible_ssh_pass",
    "ansible_ssh_password",
    "ansible_become_password",
    "ansible_become_pass",
    "ansible_become_exe",
    "ansible_become_flags",
)
_BY_ANSIBLE_ONLY_OF_ENVIRONMENT = (
    "ANSIBLE_BECOME_ASK_PASS",
    "ANSIBLE_BECOME_EXE",
    "ANSIBLE_BECOME_FLAGS",
    "ANSIBLE_BECOME_PASS",
    "ANSIBLE_BECOME_PASSWORD_FILE",
)
_PYTHON = "/usr/bin/python3"
_NO = frozenset({"false", "no", "off", "0", "n", "f"})


@dataclass(frozen=True)
class Login:
    """How one logs in where the inventory says nothing: ``--user``, ``--private-key``, the environment."""

    user: str | None = None
    private_key: str | None = None
    asks_for_passwords: bool = False
    environment: Mapping[str, str] | None = None

    def setting(self, name: str) -> str | None:
        """What the environment says, as Ansible reads it."""
        return (self.environment or {}).get(name)


@dataclass(frozen=True)
class Unanswered:
    """Why a host gave no answer; ``is_by_choice`` when it was not even asked."""

    why: str
    is_by_choice: bool = False


class NotByPlainSshError(Exception):
    """A host is reached in a way that Ansible knows and this module does not."""

    def __init__(self, setting: str, value: object = "given") -> None:
        super().__init__(f"{setting} is {value}")


def ask(
    questions: Mapping[str, tuple[str, Mapping[str, Any]]],
    hosts: Mapping[str, Host],
    login: Login,
    forks: int | None = None,
    source: str = "host_records",
    *,
    seconds: int = _SECONDS,
) -> dict[str, Any]:
    """What hosts answer; by host name a verb and its arguments, of ``source``: a program of this package.

    An answer is what the verb returns, or Unanswered. Raises nothing for a host that cannot be asked, or
    that says nothing for so many seconds.
    """
    if not questions:
        return {}

    def one(name: str) -> Any:  # noqa: ANN401 - an answer is whatever the verb returns
        verb, arguments = questions[name]
        try:
            return _ask(command(hosts[name], login), program(sources(source), verb, arguments), seconds)
        except NotByPlainSshError as problem:
            return Unanswered(str(problem), is_by_choice=True)

    with ThreadPoolExecutor(forks or default_forks(len(questions))) as pool:
        return dict(zip(questions, pool.map(one, questions), strict=True))


def command(host: Host, login: Login, python_options: Sequence[str] = ("-IS", "-")) -> list[str]:
    """The command that runs a program on a host, as root: by default the one from its standard input.

    Raises NotByPlainSshError.
    """
    said = {name: value for name, value in host.connection.items() if value is not None}
    _refuse_what_only_ansible_does(said, login)
    python = shlex.join([_python(said), *python_options])
    as_root = shlex.join(["sh", "-c", _AS_ROOT.format(python=python)])
    if said.get("ansible_connection") == "local":
        return shlex.split(as_root)
    return [
        *_words(said, login, "ansible_ssh_executable", default="ssh"),
        *("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECTION_SECONDS}"),
        *(word for name in _ARGUMENTS for word in _words(said, login, name)),
        *("-o", f"StrictHostKeyChecking={_host_key_checking(said)}"),
        *keepalive(),
        *_options(said, login),
        *("--", _first(said, *_HOST) or host.name, as_root),
    ]


def _refuse_what_only_ansible_does(said: Mapping[str, Any], login: Login) -> None:
    if login.asks_for_passwords:
        raise NotByPlainSshError("password")
    given = [name for name in _BY_ANSIBLE_ONLY if name in said]
    given += [
        name for name in _BY_ANSIBLE_ONLY_OF_ENVIRONMENT if (login.setting(name) or "no").lower() not in _NO
    ]
    if given:
        raise NotByPlainSshError(given[0])
    if said.get("ansible_connection", "ssh") not in {"ssh", "smart", "local"}:
        raise NotByPlainSshError("ansible_connection", said["ansible_connection"])
    method = said.get("ansible_become_method", login.setting("ANSIBLE_BECOME_METHOD") or "sudo")
    if method != "sudo":
        raise NotByPlainSshError("ansible_become_method", method)
    for name, value in said.items():
        if not isinstance(value, str | int | float):
            raise NotByPlainSshError(name, "neither a text nor a number")
        if "{{" in str(value):
            raise NotByPlainSshError(name, "a template that only a run can render")


def _python(said: Mapping[str, Any]) -> str:
    """The interpreter; to look for one is left to Ansible, which finds this one on every supported system."""
    chosen = str(said.get("ansible_python_interpreter", _PYTHON))
    return _PYTHON if chosen.startswith("auto") else chosen


def _host_key_checking(said: Mapping[str, Any]) -> str:
    return "no" if (_first_said(said, *_CHECKS_KEYS) or "yes").lower() in _NO else "yes"


def _first_said(said: Mapping[str, Any], *names: str) -> str | None:
    return next((str(said[name]) for name in names if name in said), None)


def _first(said: Mapping[str, Any], *names: str) -> str | None:
    return next((str(said[name]) for name in names if said.get(name)), None)


def _options(said: Mapping[str, Any], login: Login) -> Iterator[str]:
    typed = {"-i": login.private_key, "-l": login.user}
    for option, variables, environment in _OPTIONS:
        value = _first(said, *variables) or typed.get(option) or login.setting(environment)
        if value:
            yield from (option, str(Path(value).expanduser()) if option == "-i" else value)


def _words(said: Mapping[str, Any], login: Login, name: str, default: str = "") -> list[str]:
    try:
        return shlex.split(str(said.get(name, login.setting(name.upper()) or default)))
    except ValueError as problem:
        raise NotByPlainSshError(name, f"no list of words: {problem}") from None


def _ask(words: list[str], text: str, seconds: int) -> Any:  # noqa: ANN401
    """Sends a program and reads its answer: the line that begins with the mark."""
    try:
        done = subprocess.run(
            words,
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except OSError as problem:
        return Unanswered(f"{words[0]}: {problem.strerror}")
    except subprocess.TimeoutExpired:
        return Unanswered(f"no answer within {seconds} s")
    line = next((line for line in done.stdout.splitlines() if line.startswith(_MARK)), None)
    if done.returncode or line is None:
        said = done.stderr.strip().splitlines()
        return Unanswered(said[-1] if said else f"exit code {done.returncode}")
    return json.loads(line.removeprefix(_MARK))
