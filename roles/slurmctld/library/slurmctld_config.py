#!/usr/bin/python
"""Ansible module: brings slurmctld to a set of configuration files without disturbing jobs."""

import grp
import pwd
import re
import shutil
import stat
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import replace_file
from ansible.module_utils.root_file import give_to_root, left
from ansible.module_utils.slurm_conf import (
    ASK_FOR_JOBS,
    ASK_WHAT_WAITS,
    changed_parameters,
    controllers_of,
    guarded,
    parse_conf,
    squeue_arguments,
    who_waits_for,
)
from ansible.module_utils.slurm_last_deployed import Identity, LastDeployed, id_of
from ansible.module_utils.slurm_parameters import (
    LISTENING_AND_AUTHENTICATION,
    RECONFIGURABLE_BEFORE,
    RECONFIGURES_BY_NEW_PROCESS,
)
from ansible.module_utils.slurm_standing import Standing, this_host
from ansible.module_utils.slurm_state import ControllerState
from ansible.module_utils.slurm_versions import (
    ASK_FOR_VERSIONS,
    Version,
    is_before,
    oldest,
    parse_version,
)

DOCUMENTATION = r"""
module: slurmctld_config
short_description: Bring slurmctld to a set of configuration files
description:
  - Compares the files with those in place, has a throwaway slurmctld in an empty network namespace judge the
    new ones, writes them, and starts, reconfigures or restarts the daemon, whichever the change needs.
  - What the daemon last took is recorded, so that an interrupted run is completed by the next one.
  - Where StateSaveLocation is another, the state is copied there while the daemon is stopped.
  - One of several controllers that stands by takes the files that the leading one took, and no others.
  - Of several controllers the state says with which configuration one may lead, and each knows which it has.
  - When the daemon does not take the new files, the old ones are put back.
options:
  files:
    description: File name to content, for every file slurmctld reads or ships to the nodes.
    type: dict
    required: true
  directory:
    description: Where the files lie.
    type: path
    default: /etc/slurm
  owned_directories:
    description: Directories that the user slurm must own, made when missing.
    type: list
    elements: path
    default: []
  state_directory:
    description: Where the record of what the daemon last took is kept.
    type: path
    default: /var/lib/deploy/slurmctld
  timeout:
    description: Seconds to wait for the daemon to answer.
    type: int
    default: 60
  may_lose_jobs:
    description: Whether a change is made that loses jobs which are there.
    type: bool
    default: false
  told_otherwise:
    description: Whether the daemon was told something else than its files say, and has to read them again.
    type: bool
    default: false
  follows:
    description:
      - Of one of several controllers that is not the first, whether that took the same files in this run.
        One that stands by follows it only.
    type: bool
  database_was_on:
    description: The host of the accounting database that was loaded where it is now.
    type: str
    default: ""
  judged_by:
    description: >-
      Where another release is unpacked, whose slurmctld judges the files. Nothing is changed then.
    type: path
    default: ""
  not_added:
    description: File name to lines that stay in it where they are, and are left out where they are not.
    type: dict
    default: {}
  not_there:
    description: Names of files that are taken away where an earlier run wrote them.
    type: list
    elements: str
    default: []
  known_since:
    description: >-
      Lines of the files that Slurm takes from a version on. They are left out while the controller, or a node
      that has told it its version, has an older one, which would refuse the file.
    type: dict
    default: {}
author: [the maintainers of this project]
"""

RETURN = r"""
action:
  description: none, start, reconfigure or restart.
  type: str
  returned: always
reasons:
  description: The parameters that made the action necessary.
  type: list
  returned: always
deploy_impact:
  description: C(kind), the action, C(service), C(reasons), and C(guarded), the changes that lose jobs; how
    C(deploy plan) knows what a change does.
  type: dict
  returned: always
deploy_pending:
  description: What is left to a later run, which C(deploy) names and does not record as done.
  type: list
  returned: always
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""

_NEEDS_DATABASE = frozenset(
    {"accountingstoragetype", "accountingstoragehost", "accountingstorageenforce", "accountingstoragetres"}
)
_NEEDS_KEY = frozenset({"authtype", "credtype", "authalttypes", "authaltparameters"})
"""Whose plugin and key a preview has not brought yet.

By munge, Slurm's default, it opens no socket of auth/slurm, which would take the place of the daemon's own.
"""
_GATHERS = "acctgatherenergytype"
_GATHERS_FILE = "acct_gather.conf"
"""Which plugins measure, and their file, which none other can read: a preview has not brought them yet."""
_OF_THE_SITE = re.compile(
    "slurmctldprimaryo(n|ff)prog|(prolog|epilog)slurmctld|(suspend|resume|resumefail|reboot|healthcheck)program"
    "|mailprog|unkillablestepprogram|jobcomp.+|slurmschedlogfile"
)
"""Programs of the site that slurmctld starts, and where it writes or reports to besides its own state."""
_PLUGINS = frozenset({"jobsubmitplugins", "burstbuffertype"})
"""Lists of plugins; among Slurm's own is one that runs a script of the site."""
_SCRIPTED = re.compile(r"(job_submit/|burst_buffer/)?lua", re.IGNORECASE)
_UP = re.compile(r"Slurmctld\(\S+\) at (\S+) is UP")
_PARTITION_NEEDS_DATABASE = re.compile(
    r"\s(QOS|AllowQos|DenyQos|AllowAccounts|DenyAccounts)=\S+", re.IGNORECASE
)

_WEIGHTS = re.compile(r"((?:^|\s)(?:TRESBillingWeights|PriorityWeightTRES)=)(\S+)", re.IGNORECASE)
"""By resource, of which Slurm knows those with a slash by its database alone."""


def decide(applied: dict[str, str], desired: dict[str, str], version: Version) -> tuple[str, list[str]]:
    """How a running slurmctld takes the desired files: (none | reconfigure | restart, the reasons)."""
    differing = sorted(
        name for name in applied.keys() | desired.keys() if applied.get(name) != desired.get(name)
    )
    if not differing:
        return "none", []
    parameters = changed_parameters(applied.get("slurm.conf", ""), desired.get("slurm.conf", ""))
    if version >= RECONFIGURES_BY_NEW_PROCESS:
        blocking = [key for key in parameters if key in LISTENING_AND_AUTHENTICATION]
    else:
        blocking = [key for key in parameters if not re.fullmatch(RECONFIGURABLE_BEFORE, key)]
    if blocking:
        return "restart", blocking
    return "reconfigure", parameters or differing


def isolated(conf: str, directory: str, host: str = "", *, is_preview: bool = False) -> str:
    """The candidate slurm.conf for the throwaway daemon.

    It is the only controller on its ``host``, has a state of its own, asks no database, takes no tokens,
    starts no program of the site and runs none of its scripts.
    """
    is_named = host in controllers_of(conf)
    replaced = {
        "statesavelocation": f"{directory}/state",
        "slurmctldpidfile": f"{directory}/slurmctld.pid",
        "slurmctldlogfile": f"{directory}/slurmctld.log",
    }
    lines = []
    for each in conf.splitlines():
        line = _WEIGHTS.sub(partial(_weights_without_database, conf), each)
        key = line.split("=", 1)[0].strip().lower()
        if key in replaced or key in _NEEDS_DATABASE | _NEEDS_KEY or _OF_THE_SITE.fullmatch(key):
            continue
        if is_preview and key == _GATHERS:
            continue
        if is_named and key == "slurmctldhost" and host not in controllers_of(line):
            continue
        if key in _PLUGINS:
            names = [name.strip() for name in line.split("=", 1)[1].split(",")]
            kept = [name for name in names if not _SCRIPTED.fullmatch(name)]
            lines += [f"{line.split('=', 1)[0]}={','.join(kept)}"] if kept else []
            continue
        lines.append(_PARTITION_NEEDS_DATABASE.sub("", line) if key == "partitionname" else line)
    lines += [f"{key}={value}" for key, value in replaced.items()]
    return "\n".join(lines) + "\n"


def _weights_without_database(conf: str, found: re.Match[str]) -> str:
    """The weights of a setting but for those of resources that the database will have."""
    accounted = re.search(r"^AccountingStorageTRES=(\S*)", conf, re.IGNORECASE | re.MULTILINE)
    names = accounted[1].lower().split(",") if accounted else []
    weights = found[2].split(",")
    kept = [weight for weight in weights if weight.split("=", 1)[0].lower() not in names]
    return f"{found[1]}{','.join(kept)}" if kept else " "


class Slurmctld:
    """The daemon of this machine and its files."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.directory = Path(module.params["directory"])
        self.record = Path(module.params["state_directory"])
        self.directories = [Path(name) for name in module.params["owned_directories"]]
        self.files: dict[str, str] = module.params["files"]
        # One that lies there and that no run wrote is the site's own.
        self.gone = [name for name in module.params["not_there"] if (self.record / name).is_file()]
        self.other = Path(module.params["judged_by"]) if module.params["judged_by"] else None
        """Where another release is, which is tried in place of the installed one."""
        self.program = module.get_bin_path("slurmctld")

    def version(self) -> Version:
        """The installed version; empty when slurmctld is not installed."""
        if not self.program:
            return ()
        return parse_version(self._run([self.program, "-V"])[1])

    def oldest_version(self, own: Version, *, runs: bool = True) -> Version:
        """The oldest of the controller's version and those of the nodes that ever registered with it.

        Where it does not run, another one of several may lead, and knows them.
        """
        if not runs and not self.is_one_of_several():
            return own
        code, said = self._run(ASK_FOR_VERSIONS)
        return own if code else oldest(own, said.splitlines())

    def running(self) -> bool:
        """Whether systemd says active."""
        return self._run(["systemctl", "is-active", "--quiet", "slurmctld"])[0] == 0

    def enabled(self) -> bool:
        """Whether it starts at boot."""
        return self._run(["systemctl", "is-enabled", "--quiet", "slurmctld"])[0] == 0

    def enable(self) -> None:
        """Has it start at boot, also where it was masked."""
        self._must(["systemctl", "unmask", "slurmctld"])
        self._must(["systemctl", "enable", "slurmctld"])

    def read(self, directory: Path) -> dict[str, str]:
        """The managed files that are there."""
        return {
            name: (directory / name).read_text(encoding="utf-8")
            for name in (*self.files, *self.gone)
            if (directory / name).is_file()
        }

    def write(self, directory: Path, files: dict[str, str], mode: int) -> None:
        """Puts every file in place whole; a managed file that is not given goes away."""
        directory.mkdir(parents=True, exist_ok=True)
        for name in (*self.files, *self.gone):
            target = directory / name
            if name not in files:
                target.unlink(missing_ok=True)
                continue
            replace_file(target, files[name].encode(), mode)

    def lacks_directories(self) -> bool:
        """Whether a directory is not there, or not the user slurm's alone."""
        return any(
            not path.is_dir() or _ownership(path) != (*_ids_of_slurm(), 0o755) for path in self.directories
        )

    def opened_files(self) -> bool:
        """Gives the files back to root, for all to read; returns whether any had to be."""
        changed = False
        for name in self.files:
            path = self.directory / name
            if path.is_file():
                changed |= give_to_root(self.module, path)
        return changed

    def managed(self) -> dict[str, Any]:
        """What is recorded of the host, as it is now."""
        files = left([*(self.directory / name for name in self.files), *self.directories])
        return {"files": files, "services": {"slurmctld": {"runs": True}}}

    def make_directories(self) -> None:
        """Makes them, for the user slurm; on storage where root is nobody those that are right are left."""
        for path in self.directories:
            if path.is_dir() and _ownership(path) == (*_ids_of_slurm(), 0o755):
                continue
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o755)
            shutil.chown(path, "slurm", "slurm")

    def judge(self) -> None:
        """Fails the module when a throwaway slurmctld rejects the files."""
        with tempfile.TemporaryDirectory(prefix="slurmctld-check-") as name:
            place = Path(name)
            (place / "state").mkdir()
            is_preview = self.module.check_mode
            for file, content in self.files.items():
                if is_preview and file == _GATHERS_FILE:
                    continue
                text = content
                if file == "slurm.conf":
                    text = isolated(content, name, this_host(), is_preview=is_preview)
                (place / file).write_text(text, encoding="utf-8")
            for path in (place, place / "state"):
                shutil.chown(path, "slurm", "slurm")
            unit = place.name
            try:
                self._must(self._throwaway(unit, place))
                verdict = self._verdict(unit, [place / "output", place / "slurmctld.log"])
            finally:
                self._run(["systemctl", "stop", unit])
        if verdict:
            self.module.fail_json(
                msg=f"{self._judge_named()} rejects the new configuration, so nothing was changed: {verdict}"
            )

    def _judge_named(self) -> str:
        return "slurmctld of the wanted release" if self.other else "slurmctld"

    def _of_another_release(self, root: Path) -> tuple[str, list[str]]:
        """Its slurmctld, and what shows it its own plugins where the installed ones are."""
        programs = sorted(root.glob("usr/sbin/slurmctld*"))
        # Of the distribution's packages, and of SchedMD's.
        places = ("usr/lib/*/slurm-wlm", "usr/lib/*/slurm")
        plugins = sorted(path for place in places for path in root.glob(place))
        if not programs or not plugins:
            self.module.fail_json(msg=f"{root} has no slurmctld: the other release is not unpacked")
        binds = [f"--property=BindReadOnlyPaths={path}:/{path.relative_to(root)}" for path in plugins]
        libraries = ":".join(str(path.parent) for path in plugins)
        return str(programs[0]), [*binds, f"--setenv=LD_LIBRARY_PATH={libraries}"]

    def _throwaway(self, unit: str, place: Path) -> list[str]:
        """Runs slurmctld where it writes nothing but its own state and reaches nobody: in a private network.

        That holds only the loopback device, which gets an address for documentation (RFC 5737), because
        slurmctld opens no socket on a host whose only addresses are loopback ones.
        """
        ip = self.module.get_bin_path("ip", required=True)
        properties = {
            "PrivateNetwork": "yes",
            "ProtectSystem": "strict",
            "ReadWritePaths": str(place),
            "ExecStartPre": f"{ip} address add 192.0.2.1/32 dev lo",
            "StandardOutput": f"file:{place}/output",
            "StandardError": f"file:{place}/output",
            "KillSignal": "SIGKILL",
            "RuntimeMaxSec": str(self.module.params["timeout"] + 10),
        }
        program, more = self._of_another_release(self.other) if self.other else (str(self.program), [])
        return [
            *["systemd-run", "--quiet", "--collect", "--unit", unit],
            *(f"--property={key}={value}" for key, value in properties.items()),
            *more,
            *[program, "-D", "-c", "-f", str(place / "slurm.conf")],
        ]

    def _verdict(self, unit: str, logs: list[Path]) -> str:
        """Why the throwaway daemon did not come up; empty when it did."""
        deadline = time.monotonic() + self.module.params["timeout"]
        text = ""
        while time.monotonic() < deadline:
            ended = self._run(["systemctl", "is-active", "--quiet", unit])[0] != 0
            text = "\n".join(
                log.read_text(encoding="utf-8", errors="replace") for log in logs if log.exists()
            )
            if "Running as primary controller" in text:
                return ""
            if ended:
                break
            time.sleep(0.1)
        complaints = re.findall(r"(?:fatal|error): .*", text)
        return " | ".join(complaints[-4:]) or text[-400:] or "it ended without a word"

    def apply(self, action: str, version: Version) -> str:
        """Makes the daemon take the files; returns why it did not, empty when it did."""
        if action in {"start", "restart"}:
            code, out = self._run(["systemctl", action, "slurmctld"])
            problem = "" if code == 0 else out
            problem = problem or self._wait()
            if not problem and version < RECONFIGURES_BY_NEW_PROCESS:
                # Before 23.11 a restart does not send the new files to configless nodes, a reconfigure does.
                code, out = self._run(["scontrol", "reconfigure"])
                problem = "" if code == 0 else out
            return problem
        code, out = self._run(["scontrol", "reconfigure"])
        return (out or "scontrol reconfigure failed") if code != 0 else self._wait()

    def _wait(self) -> str:
        """Waits until the controller answers; returns its last words when it does not."""
        deadline = time.monotonic() + self.module.params["timeout"]
        while time.monotonic() < deadline:
            up = self.who_is_up()
            if this_host() in up or (up and not self.is_one_of_several()):
                return ""
            state = self._run(["systemctl", "show", "slurmctld", "--property=SubState", "--value"])[1]
            if state == "failed" or state.startswith("auto-restart"):
                break
            time.sleep(0.2)
        journal = self._run(["journalctl", "-u", "slurmctld", "-n", "15", "--no-pager", "-o", "cat"])[1]
        return "slurmctld does not answer: " + (" | ".join(journal.splitlines()[-6:]) or "no log")

    def who_is_up(self) -> list[str]:
        """The controllers that answer, by the configuration that is in place."""
        # It fails where one of them does not.
        return _UP.findall(self._run(["timeout", "30", "scontrol", "ping"])[1])

    def is_one_of_several(self) -> bool:
        """Whether the files name other controllers as well."""
        return len(controllers_of(self.files.get("slurm.conf", ""))) > 1

    def who_runs(self, names: list[str], standing: Standing) -> list[str]:
        """Which of these controllers run: they answer, or lead where this one cannot reach them."""
        if not names:
            return []
        return [name for name in self.who_is_up() if name in names] or standing.who_beats(names)

    def refuse_others(self, names: list[str], standing: Standing, why: str) -> None:
        """Fails the module while one of these controllers runs."""
        up = self.who_runs(names, standing)
        if up:
            self.module.fail_json(
                msg=f"nothing was changed: slurmctld runs on {', '.join(up)}, and {why}. Where its line is "
                f"gone from the inventory: deploy node remove INVENTORY {up[0]}; else stop it there: "
                "systemctl disable --now slurmctld"
            )

    def is_left_alone(self, standing: Standing, last: LastDeployed) -> bool:
        """Whether one that stood by does not run, and nobody leads; it may, with what it has."""
        may_lead = not standing.runs and last.own() in last.allowed()
        return may_lead and not self.who_runs(standing.others, standing)

    def stop(self) -> None:
        """Stops it; it has written its state then."""
        self._must(["systemctl", "stop", "slurmctld"])

    def lost_jobs(self, lost: list[dict[str, Any]]) -> list[str] | None:
        """The ids of the jobs that changes would lose; None when Slurm does not answer."""
        found: dict[str, None] = {}
        for change in lost:
            code, out = self._run([*ASK_FOR_JOBS, *squeue_arguments(change)])
            if code != 0:
                return None
            found |= dict.fromkeys(out.split())
            if change.get("required"):
                code, out = self._run([*ASK_WHAT_WAITS])
                if code != 0:
                    return None
                found |= dict.fromkeys(who_waits_for(change["nodes"], out))
        return list(found)

    def refuse_to_lose(self, lost: list[dict[str, Any]]) -> None:
        """Fails the module when changes would lose jobs, or nobody can say which, and nobody agreed."""
        if not lost or self.module.params["may_lose_jobs"]:
            return
        # Where slurmctld does not run here, another controller may lead, and answers.
        jobs = self.lost_jobs(lost)
        if jobs == []:
            return
        changes = ", ".join(
            f"{change['parameter']} {change['before']} -> {change['after']}" for change in lost
        )
        whose = f"would lose jobs {' '.join(jobs)}" if jobs else "may lose jobs, and Slurm does not answer"
        self.module.fail_json(
            msg=f"nothing was changed: {changes} {whose}. Wait until they are done, or let it happen: "
            "deploy cluster INVENTORY --yes (slurmctld_may_lose_jobs: true)"
        )

    def _run(self, command: list[str]) -> tuple[int, str]:
        code, out, err = self.module.run_command(command)
        return code, (out + err).strip()

    def _must(self, command: list[str]) -> None:
        code, out = self._run(command)
        if code != 0:
            self.module.fail_json(msg=f"{' '.join(command)}: {out}")


def _ids_of_slurm() -> tuple[int, int]:
    try:
        return pwd.getpwnam("slurm").pw_uid, grp.getgrnam("slurm").gr_gid
    except KeyError:
        return -1, -1


def _ownership(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


def without_unknown(files: dict[str, str], since: dict[str, str], version: Version) -> dict[str, str]:
    """The files without the lines that a Slurm of this version does not know."""
    unknown = {line for line, release in since.items() if is_before(version, release)}
    return {
        name: "".join(line for line in text.splitlines(keepends=True) if line.rstrip("\n") not in unknown)
        for name, text in files.items()
    }


def without_new(
    files: dict[str, str], current: dict[str, str], lines: dict[str, list[str]]
) -> dict[str, str]:
    """The files without those of the lines that the files in place do not have."""
    kept = dict(files)
    for name, named in lines.items():
        new = set(named) - set(current.get(name, "").splitlines())
        kept[name] = "".join(
            line for line in kept[name].splitlines(keepends=True) if line.rstrip("\n") not in new
        )
    return kept


def planned(
    given: dict[str, str], current: dict[str, str], parameters: dict[str, Any], version: Version
) -> tuple[dict[str, str], dict[str, str]]:
    """What Slurm of these versions knows of the files, and what of that is put in place now."""
    wanted = without_unknown(given, parameters["known_since"], version)
    return wanted, without_new(wanted, current, parameters["not_added"])


def left_out(wanted: dict[str, str], kept: dict[str, str], directory: Path) -> list[str]:
    """What of the files waits for a run that reaches all hosts."""
    return [
        f"{directory / name} without {line!r}: a run without --limit adds it"
        for name, text in wanted.items()
        for line in text.splitlines()
        if line not in kept[name].splitlines()
    ]


def _diff(before: dict[str, str], after: dict[str, str], directory: Path) -> list[dict[str, str]]:
    return [
        {
            "before_header": str(directory / name),
            "after_header": str(directory / name),
            "before": before.get(name, ""),
            "after": after.get(name, ""),
        }
        for name in (*after, *(name for name in before if name not in after))
        if before.get(name) != after.get(name)
    ]


def _argument_spec() -> dict[str, Any]:
    return {
        "files": {"type": "dict", "required": True},
        "directory": {"type": "path", "default": "/etc/slurm"},
        "owned_directories": {"type": "list", "elements": "path", "default": []},
        "state_directory": {"type": "path", "default": "/var/lib/deploy/slurmctld"},
        "timeout": {"type": "int", "default": 60},
        "may_lose_jobs": {"type": "bool", "default": False},
        "told_otherwise": {"type": "bool", "default": False},
        "follows": {"type": "bool"},
        "database_was_on": {"type": "str", "default": ""},
        "judged_by": {"type": "path", "default": ""},
        "not_added": {"type": "dict", "default": {}},
        "not_there": {"type": "list", "elements": "str", "default": []},
        "known_since": {"type": "dict", "default": {}},
    }


def main() -> None:
    """Compare, judge, write, apply, record."""
    module = AnsibleModule(argument_spec=_argument_spec(), supports_check_mode=True)
    daemon = Slurmctld(module)
    if daemon.other:
        current = daemon.read(daemon.directory)
        _, daemon.files = planned(
            daemon.files, current, module.params, daemon.oldest_version(daemon.version())
        )
        daemon.judge()
        module.exit_json(changed=False)
    bring(module, daemon)


def bring(module: AnsibleModule, daemon: Slurmctld) -> None:
    """Brings the installed slurmctld to the files."""
    current = daemon.read(daemon.directory)
    applied = daemon.read(daemon.record)
    version = daemon.version()
    running = bool(version) and daemon.running()
    known = daemon.oldest_version(version, runs=running)
    wanted, daemon.files = planned(daemon.files, current, module.params, known)
    # Of what the daemon runs with, not of what lies there: an interrupted run may have written it already.
    running_with = applied or current
    texts = [files.get("slurm.conf", "") for files in (running_with, daemon.files)]
    state = ControllerState.of(*texts, daemon.directories)
    last = LastDeployed(state.after, daemon.record)
    standing = standing_of(daemon, [*texts, current.get("slurm.conf", "")], state, last, runs=running)
    action, reasons = action_of(module, daemon, current, applied, version) if running else _START
    if action == "reconfigure" and (not standing.leads or state.moves):
        action = "restart"
    # One that stands by, or was away, takes what was allowed where Slurm was asked.
    lost = [
        change
        for change in guarded(running_with, daemon.files)
        if not (standing.stands_by or standing.catches_up or state.takes(change))
    ]
    identity = Identity(
        last,
        module.params["files"],
        is_one_of_several=daemon.is_one_of_several(),
        standing=standing,
    )
    opened = daemon.opened_files()
    enabled = bool(version) and daemon.enabled()
    to_write = current != daemon.files
    result = {
        "changed": opened
        or to_write
        or action != "none"
        or not enabled
        or daemon.lacks_directories()
        or identity.differs,
        "action": action,
        "reasons": reasons,
        "diff": _diff(current, daemon.files, daemon.directory),
        "deploy_impact": {"kind": action, "service": "slurmctld", "reasons": reasons, "guarded": lost},
        "deploy_pending": left_out(wanted, daemon.files, daemon.directory),
        "deploy_manages": daemon.managed(),
    }
    if result["changed"]:
        refuse(module, daemon, standing, texts, moves=state.moves)
    if to_write and version:
        daemon.judge()
    if module.check_mode or not result["changed"]:
        module.exit_json(**result)
    if not version:
        module.fail_json(msg="slurmctld is not installed")
    daemon.refuse_to_lose(lost)
    daemon.make_directories()
    if state.moves and not standing.stands_by:
        daemon.stop()
        state.move(module)
    if not enabled:
        daemon.enable()
    try:
        identity.allow()
    except (OSError, KeyError) as problem:
        state.give_back()
        if running:
            daemon.apply("start", version)
        module.fail_json(msg=f"nothing was changed: the user slurm cannot write {state.after}: {problem}")
    take(daemon, action, version, state, identity)
    daemon.write(daemon.record, daemon.files, 0o600)
    result["deploy_manages"] = daemon.managed()
    module.exit_json(**result)


def standing_of(
    daemon: Slurmctld,
    texts: list[str],
    state: ControllerState,
    last: LastDeployed,
    *,
    runs: bool,
) -> Standing:
    """What it is among the controllers, by the slurm.conf of before, of after, and the one in place."""
    given, allowed = daemon.module.params, last.allowed()
    standing = Standing(
        *texts,
        runs=runs,
        follows=given["follows"],
        # A directory that the state has left says what was given before that.
        is_given=allowed == [id_of(given["files"])] and not state.was_left,
        is_leaders=not allowed or last.own() in allowed,
    )
    if standing.waits and daemon.is_left_alone(standing, last):
        standing.lead()
    return standing


_START = ("start", ["slurmctld is not running"])


def action_of(
    module: AnsibleModule,
    daemon: Slurmctld,
    current: dict[str, str],
    applied: dict[str, str],
    version: Version,
) -> tuple[str, list[str]]:
    """How a daemon that runs takes the files, and why."""
    # What lies there counts where it is newer than what the daemon took.
    newest = current if current != daemon.files and applied == daemon.files else applied
    action, reasons = decide(newest, daemon.files, version)
    if action == "none" and module.params["told_otherwise"]:
        return "reconfigure", ["it was told otherwise since it read its files"]
    return action, reasons


def refuse(
    module: AnsibleModule, daemon: Slurmctld, standing: Standing, texts: list[str], *, moves: bool
) -> None:
    """Fails the module where other controllers, or the database, would not be what they are said to be."""
    if standing.waits:
        module.fail_json(
            msg=f"{standing.name} stands by, and the leading controller did not take this configuration in "
            "this run, so nothing was changed here. The next run that reaches both changes it; where the "
            "other one is lost for good, the next one without its line in [slurm-master]"
        )
    if standing.stands_by or not (standing.runs or standing.knows_itself):
        return
    if moves:
        daemon.refuse_others(standing.others, standing, "the state is to be in another directory")
    if standing.catches_up:
        return
    unknown = "it would take over from what this configuration does not know"
    daemon.refuse_others(standing.gone, standing, unknown)
    before, after = map(database_hosts, texts)
    # Of several hosts each has all rows: one that stays gives them to those that join.
    if before and after and not {*before} & {*after, module.params["database_was_on"]}:
        old, new = before[0], after[0]
        module.fail_json(
            msg=f"nothing was changed: the accounting database is on {old}, and on {new} it would begin "
            f"anew. Stop slurmdbd on {old}, load a dump of its database on {new}, and say that it is done: "
            f"slurmctld_database_was_on: {old}"
        )


def database_hosts(conf: str) -> list[str]:
    """The hosts of the accounting database by a slurm.conf, the one whose slurmdbd leads first."""
    said = parse_conf(conf)
    return [said[key] for key in ("accountingstoragehost", "accountingstoragebackuphost") if said.get(key)]


def take(
    daemon: Slurmctld, action: str, version: Version, state: ControllerState, identity: Identity
) -> None:
    """Writes the files and has the daemon take them; fails the module, with the previous ones back, else."""
    previous = daemon.read(daemon.directory)
    daemon.write(daemon.directory, daemon.files, 0o644)
    identity.have()
    problem = daemon.apply(action, version) if action != "none" else ""
    if problem and previous:
        daemon.write(daemon.directory, previous, 0o644)
        identity.give_back()
        state.give_back()
        daemon.apply("restart", version)
    if problem:
        daemon.module.fail_json(
            msg=f"slurmctld did not take the new configuration ({action}): {problem}. "
            + ("The previous files are back in place." if previous else "")
        )


if __name__ == "__main__":
    main()
