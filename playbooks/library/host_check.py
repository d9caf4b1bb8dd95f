#!/usr/bin/python
"""Ansible module: whether a machine can become what the inventory says, and the facts that roles read."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.sys_info import get_distribution, get_distribution_version
from ansible.module_utils.host_checks import (
    capacity,
    hardware,
    known_secrets,
    names,
    nvidia_driver,
    operating_system,
    other_slurm,
    package_sources,
    ports,
)
from ansible.module_utils.host_checks.finding import warning
from ansible.module_utils.host_checks.slurm_version import (
    check_control_groups,
    check_needs,
    slurm_version,
)
from ansible.module_utils.user_files import Work, as_owners

DOCUMENTATION = r"""
module: host_check
short_description: Whether a machine can become what the inventory says, and the facts that roles read
description:
  - Looks at everything in one pass and changes nothing. The action plugin of the same name adds what only
    both ends together know, the difference between their clocks, and fails when a finding is an error.
  - Gathers the few facts that roles read, so that nothing else has to.
options:
  expected:
    description: What the machine is compared with; deploy/plan/expectations.py computes it.
    type: dict
    required: true
  hosts_entries:
    description: What the role hosts_file will write into /etc/hosts.
    type: list
    elements: dict
    default: []
  secrets:
    description: What this machine's secrets must be, by variable; an empty one is not known.
    type: dict
    default: {}
author: [the maintainers of this project]
"""

RETURN = r"""
ansible_facts:
  description: The facts that roles read, with the values that Ansible's setup has on supported systems.
  type: dict
  returned: always
deploy_answer:
  description: >-
    C(findings), each with severity, reference, message and hint; C(checked), what was looked at;
    C(serves), what it has of a cluster already;
    C(slurm_version), the version of Slurm that is or would be installed.
  type: dict
  returned: always
clock:
  description: C(began) and C(ended), this machine's time; C(service), what its time service says of itself.
  type: dict
  returned: always
"""

Findings = Iterable[Mapping[str, str]]
_ROOT = Path("/")
_APPARMOR_PROFILES = "/sys/kernel/security/apparmor/profiles"


class Host:
    """One machine, and what it is compared with."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._expected: Mapping[str, Any] = module.params["expected"]
        self.facts = operating_system.facts(_ROOT, get_distribution(), get_distribution_version())
        self.installs_driver = nvidia_driver.is_managed(
            _ROOT, is_wanted=self._expected["installs_gpu_driver"]
        )
        self._secrets = {name: value for name, value in module.params["secrets"].items() if value}
        self.missing = package_sources.missing(self._expected["packages"])
        self._silent = _silent([*(need["path"] for need in self._expected["disks"]), self._state_location])

    def checks(self) -> Mapping[str, Callable[[], Findings]]:
        """The checks by what is said of them when they find nothing."""
        own_ports = self._expected["ports"]
        numbers = ", ".join(str(port["port"]) for port in own_ports)
        found: dict[str, Callable[[], Findings]] = {
            f"{self.facts['distribution']} {self.facts['distribution_version']}": self._system,
            f"{len(self._module.params['hosts_entries'])} names": self._names,
            "disk space": self._disks,
            "memory": self._memory,
            "no other Slurm": self._other_slurm,
        }
        if self._expected["slurm_needs"] or self._expected["has_slurmd"]:
            found["release of Slurm"] = self._slurm_release
        if self._secrets:
            found["secrets"] = self._known_secrets
        if self._expected["has_central_logs"]:
            found["rsyslogd unconfined"] = self._logs
        if own_ports:
            found[f"port{'s' * (len(own_ports) > 1)} {numbers}"] = self._ports
        if self.missing:
            found["package sources"] = self._package_sources
        if self._expected["hardware"]:
            found["hardware contract"] = self._hardware
        if (driver := nvidia_driver.running_version(_ROOT)) and not self.installs_driver:
            found[f"NVIDIA driver {driver}"] = self._driver
        return found

    def _run(self, *command: str) -> str:
        """The output of a command; empty when it fails or is not there."""
        if self._module.get_bin_path(command[0]) is None:
            return ""
        code, out, _ = self._module.run_command(list(command), environ_update={"LC_ALL": "C"})
        return str(out) if code == 0 else ""

    def _system(self) -> Findings:
        return operating_system.check_system(self.facts, self._expected["systems"])

    def _names(self) -> Iterator[Mapping[str, str]]:
        own = self._expected["name"]
        yield from names.check_hosts_file(
            _text("/etc/hosts"),
            self._module.params["hosts_entries"],
            own,
            removes_loopback_name=self._expected["removes_loopback_name"],
        )
        yield from names.check_lookup_order(_text("/etc/nsswitch.conf"))
        yield from names.check_lookups(self._expected["names_to_look_up"])
        yield from names.check_hostname(self._expected["hostname"], platform.node())

    def _disks(self) -> Iterator[Mapping[str, str]]:
        yield from capacity.check_scratch(self._expected["scratch"])
        column = "mb_to_install" if self.missing else "mb"
        for path in sorted(self._silent):
            yield capacity.no_answer(path)
        needs = [
            {"path": need["path"], "mb": need[column]}
            for need in self._expected["disks"]
            if need["path"] not in self._silent
        ]
        yield from capacity.check_disks(needs)

    def _memory(self) -> Findings:
        wanted = self._expected["memory_mb"]
        available = capacity.memory_mb(_text("/proc/meminfo"))
        return capacity.check_memory(available, wanted["needed"], wanted["recommended"])

    def _ports(self) -> Findings:
        return ports.check_ports(self._expected["ports"])

    def _package_sources(self) -> Iterator[Mapping[str, str]]:
        archive = self._expected["archive"]
        # A bundle will be the only source.
        listing = "" if archive else self._run("apt-get", "--print-uris", "update")
        uris = [archive] if archive else package_sources.listed_uris(listing)
        yield from package_sources.check_sources(uris)
        yield from package_sources.check_servers(
            package_sources.servers(uris, self._run("apt-config", "dump") + self._expected["apt_options"])
        )

    def _hardware(self) -> Findings:
        return hardware.check_hardware(
            self._expected["hardware"],
            lambda command: self._run(*command),
            installs_driver=self.installs_driver,
            by_name=self._expected["gpu_types_by_name"],
        )

    def _driver(self) -> Findings:
        return nvidia_driver.check_driver(
            nvidia_driver.running_version(_ROOT),
            nvidia_driver.library_version(_ROOT),
            nvidia_driver.module_version(self._run, platform.release()),
            platform.release(),
        )

    def _other_slurm(self) -> Iterator[Mapping[str, str]]:
        cluster, state_location = self._expected["cluster"], self._answering_state
        if cluster:
            yield from other_slurm.check_source(_ROOT, is_built=self._expected["slurm_is_built"])
            yield from other_slurm.check_installation(_ROOT)
            yield from other_slurm.check_membership(_ROOT, cluster, self._expected["controllers"])
        if state_location:
            yield from other_slurm.check_state(_ROOT, cluster, state_location)

    @property
    def _state_location(self) -> str:
        return str(self._expected["state_location"])

    @property
    def _answering_state(self) -> str:
        """Where slurmctld keeps its state; empty where that does not answer, which is an error by itself."""
        return "" if self._state_location in self._silent else self._state_location

    def _logs(self) -> Findings:
        return operating_system.check_confined_logs(_text(_APPARMOR_PROFILES))

    def _slurm_release(self) -> Iterator[Mapping[str, str]]:
        version = self.slurm_version
        yield from check_needs(version, self._expected["slurm_needs"])
        if self._expected["has_slurmd"]:
            yield from check_control_groups(version, _ROOT)

    def _known_secrets(self) -> Findings:
        return known_secrets.check_secrets(_ROOT, self._secrets, self._runs_one_of)

    def _runs_one_of(self, units: tuple[str, ...]) -> bool:
        return bool(self._run("systemctl", "is-active", *units))

    def serves(self) -> dict[str, Any]:
        """What the machine has of a cluster already: whose it is, secrets, on a controller its state."""
        state_location = self._answering_state
        return {
            "cluster": next(other_slurm.memberships(_ROOT), None) if self._expected["cluster"] else None,
            "secrets": sorted(known_secrets.secrets_in_use(_ROOT, self._runs_one_of)),
            "state": bool(state_location) and other_slurm.has_state(_ROOT, state_location),
        }

    @cached_property
    def slurm_version(self) -> str:
        """The version of Slurm here; empty where none is wanted."""
        if not self._expected["cluster"]:
            return ""
        built = self._expected["slurm_wanted"] if self._expected["slurm_is_built"] else ""
        return slurm_version(self._run, built, has_other_source=self._expected["slurm_has_other_source"])

    def time_service(self) -> str:
        """What chrony says of itself; empty where it does not run."""
        answer = self._run("chronyc", "-c", "tracking")
        if not answer:
            return ""
        return "unsynchronized" if "Not synchronised" in answer else "synchronized"


def _silent(paths: Iterable[str]) -> set[str]:
    """Those of these places that are on file systems which do not answer; who asks one cannot be ended."""
    outcomes = as_owners(
        [Work(path, path, 0, 0, partial(capacity.answers, path)) for path in {*paths} - {""}]
    )
    return {path for path, outcome in outcomes.items() if outcome.problem}


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _findings(subject: str, check: Callable[[], Findings]) -> list[Mapping[str, str]]:
    """What a check finds; one that breaks is itself something to know of, and hides no other."""
    try:
        return list(check())
    except Exception as problem:  # noqa: BLE001 - whatever it is, the other checks go on
        reason = f"{type(problem).__name__}: {problem}"
        message = f"this could not be checked ({subject}): {reason}"
        return [
            warning("check-not-made", message, "a fault of deploy, or of this machine's /proc; report it")
        ]


def main() -> None:
    """Look at everything, say all of it."""
    arguments: dict[str, Any] = {
        "expected": {"type": "dict", "required": True},
        "hosts_entries": {"type": "list", "elements": "dict", "default": []},
        "secrets": {"type": "dict", "default": {}, "no_log": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    began = time.time()
    host = Host(module)
    found = {subject: _findings(subject, check) for subject, check in host.checks().items()}
    service = host.time_service() if module.params["expected"]["clock"]["is_steered"] else ""
    module.exit_json(
        changed=False,
        ansible_facts=host.facts,
        deploy_answer={
            "findings": [finding for findings in found.values() for finding in findings],
            "serves": host.serves(),
            "slurm_version": host.slurm_version,
            "checked": [subject for subject, findings in found.items() if not findings],
        },
        clock={"began": began, "service": service, "ended": time.time()},
    )


if __name__ == "__main__":
    main()
