"""The settings of Ansible for a run: one environment, the same wherever the command is started."""

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from deploy.content import roles
from deploy.run.keepalive import keepalive
from deploy.site.ansible_settings import reading_environment

_CONNECTION_SECONDS = 10
"""How long a host may take to answer; a busy admin's machine alone takes more than five."""
_LARGEST_RESULT = 50_000_000
_MOST_FORKS = 50
_FORKS_PER_CORE = 10
# Cores that the mitogen we depend on was run with; with others its strategy may not load.
_MITOGEN_CORES = ("2.19", "2.20", "2.21")
PLAIN = "DEPLOY_PLAIN_ANSIBLE"


def is_plain_wanted() -> bool:
    """Whether the environment asks for Ansible as it is."""
    return os.environ.get(PLAIN, "0") not in {"", "0"}


@dataclass(frozen=True)
class Settings:
    """What of a run's settings can be chosen; ``None`` means the best for this machine."""

    hosts: int | None = None
    """How many hosts take part; forks follow from it."""
    forks: int | None = None
    """Hosts at once (``--forks``)."""
    mitogen: bool | None = None
    """Whether hosts are reached by mitogen; else by ssh."""
    plain: bool = field(default_factory=is_plain_wanted)
    """Whether Ansible is left as it is: ansible-playbook itself, its own strategy, no mitogen."""


def ansible_environment(
    settings: Settings | None = None, *, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment of an Ansible process, be it ours or a plain ``ansible-playbook``."""
    settings = settings or Settings()
    inherited = os.environ if base is None else base
    environment = reading_environment(inherited) | {
        "ANSIBLE_ROLES_PATH": str(roles()),
        "ANSIBLE_FORKS": str(settings.forks or default_forks(settings.hosts)),
        "ANSIBLE_TIMEOUT": str(_CONNECTION_SECONDS),
        "ANSIBLE_HOST_KEY_CHECKING": "true",
        "ANSIBLE_INJECT_FACT_VARS": "false",
        # Records of what deploy manages are made of it; since 2.21 Ansible leaves it away.
        "ANSIBLE_INJECT_INVOCATION": "true",
        # Where every supported distribution has it; looking for another costs each host a round trip.
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
        "ANSIBLE_GATHERING": "smart",
        "ANSIBLE_RETRY_FILES_ENABLED": "false",
        "ANSIBLE_DEPRECATION_WARNINGS": "false",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_NOCOWS": "true",
        "ANSIBLE_DISPLAY_ARGS_TO_STDOUT": "false",
        "PYTHONUNBUFFERED": "1",
        "MAX_EVENT_RES": str(_LARGEST_RESULT),
    }
    return environment | (mitogen_environment() if wants_mitogen(settings) else _openssh(environment))


def default_forks(hosts: int | None) -> int:
    """Hosts worked on at once: all, but no more than the cores of this machine can feed."""
    most = min((os.cpu_count() or 1) * _FORKS_PER_CORE, _MOST_FORKS)
    return most if hosts is None else max(1, min(hosts, most))


def wants_mitogen(settings: Settings) -> bool:
    """Whether a run uses mitogen: as chosen, else when it works with the installed ansible-core."""
    if settings.plain:
        return False
    return is_mitogen_supported() if settings.mitogen is None else settings.mitogen


def is_mitogen_supported() -> bool:
    """Whether mitogen is here and was proved with the installed ansible-core."""
    return not why_no_mitogen()


def why_no_mitogen() -> str:
    """Why Ansible has to do without mitogen, in a sentence; empty where it has not."""
    try:
        core = version("ansible-core")
    except PackageNotFoundError:
        core = "(none)"
    if ".".join(core.split(".")[:2]) not in _MITOGEN_CORES:
        why = f"mitogen was not tested with ansible-core {core}, but with {', '.join(_MITOGEN_CORES)}"
    elif importlib.util.find_spec("ansible_mitogen") is None:
        why = "mitogen is not installed"
    else:
        return ""
    return f"{why}: hosts are reached without it, which takes several times as long"


def mitogen_environment() -> dict[str, str]:
    """What has Ansible use mitogen."""
    plugins = Path(__file__).with_name("strategy")
    return {"ANSIBLE_STRATEGY": "deploy_linear", "ANSIBLE_STRATEGY_PLUGINS": str(plugins)}


def _openssh(environment: Mapping[str, str]) -> dict[str, str]:
    shared = "-o ControlMaster=auto -o ControlPersist=60s"
    extra = environment.get("ANSIBLE_SSH_EXTRA_ARGS", "")
    return {
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_SSH_ARGS": environment.get("ANSIBLE_SSH_ARGS", shared),
        # Ansible puts them behind its other options of ssh.
        "ANSIBLE_SSH_EXTRA_ARGS": " ".join([extra, *keepalive()]).strip(),
    }
