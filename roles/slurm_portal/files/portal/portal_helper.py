"""What the portal may not do by itself: asks PAM, and types Slurm's commands as the user.

systemd starts it as root for every connection to a socket that is the hub's alone. A request is one line of
JSON, and so is the answer. Whatever the hub sends, it can only ask whether a password is right, start
servers, look at and cancel jobs and submit their scripts again, of people: nobody of the system, not root,
and with ``groups`` in the settings only their members. Slurm's commands run as the user, never as root.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from portal_again import arguments, fields
from portal_choices import OWN_IMAGE, Choices, NotAllowedError, Offers, chosen, is_image, offers
from portal_cluster import NODES, partitions, reservations
from portal_jobs import ENDED, LINE, Job, ended, exit_code, queued
from portal_templates import one_of, templates

SETTINGS = Path("/etc/slurm-portal/settings.json")
PAM_SERVICE = "slurm-portal"
COMMENT = "slurm-portal"
_LONGEST = 1 << 20
_LONGEST_VALUE = 1 << 17
_SECONDS = 60
_LOGIN = re.compile(r"[a-z_][a-z0-9_.-]{0,63}")
_JOB = re.compile(r"[0-9]{1,10}")
_TASK = re.compile(r"[0-9]{1,10}(_[0-9]{1,10}|_\[[0-9,:-]{1,1000}\])?")
_ENDED_JOB = re.compile(r"[0-9]{1,10}(_[0-9]{1,10})?")
_MOST_ENDED = 50
_VARIABLE = re.compile(r"(JUPYTERHUB|JPY|PORTAL)_[A-Z0-9_]{1,60}")
_SCRIPT = """\
#!/bin/bash -l
# Made by the portal of this cluster.
{modules}exec {python} -I {program} {apps}
"""
_IN_IMAGE = """\
#!/bin/bash -l
# Made by the portal of this cluster.
exec {srun} sh {place}/start_in_image.sh {program} {apps}
"""


class RefusedError(Exception):
    """A request that is not done; the text is for the user."""


@dataclass(frozen=True)
class Person:
    """An account that may use the portal."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str
    groups: tuple[int, ...]
    is_admin: bool = False


def person(name: object, settings: Mapping[str, Any]) -> Person:
    """The account of that name; raises RefusedError where it is nobody who may use the portal."""
    if not isinstance(name, str) or not _LOGIN.fullmatch(name):
        raise RefusedError("This is no name of an account.")
    try:
        told = pwd.getpwnam(name)
    except KeyError:
        raise RefusedError("There is no such account.") from None
    groups = tuple(os.getgrouplist(told.pw_name, told.pw_gid))
    if told.pw_name != name or told.pw_uid < int(settings["min_uid"]) or told.pw_uid == 65534:  # noqa: PLR2004 - nobody
        raise RefusedError("This account is the system's.")
    if settings["groups"] and not _is_in(groups, settings["groups"]):
        raise RefusedError("This account is in none of the groups that may use the portal.")
    if not told.pw_dir.startswith("/") or "%" in told.pw_dir:
        raise RefusedError("This account has no home directory.")
    return Person(
        name,
        told.pw_uid,
        told.pw_gid,
        told.pw_dir,
        told.pw_shell,
        groups,
        _is_in(groups, settings["admin_groups"]),
    )


def _is_in(groups: Sequence[int], names: Sequence[str]) -> bool:
    for name in names:
        try:
            if grp.getgrnam(name).gr_gid in groups:
                return True
        except KeyError:
            continue
    return False


class Helper:
    """Does one request."""

    def __init__(self, settings: Mapping[str, Any], path: str = "/usr/local/bin:/usr/bin:/bin") -> None:
        self._settings = settings
        self._path = path

    def answer(self, request: object) -> dict[str, Any]:
        """The answer to a request, for JSON."""
        verbs = {
            "login": self.login,
            "known": self.known,
            "offers": self.offers,
            "submit": self.submit,
            "job": self.job,
            "jobs": self.jobs,
            "cancel": self.cancel,
            "again": self.again,
            "template": self.template,
            "cluster": self.cluster,
        }
        try:
            if not isinstance(request, dict) or request.get("do") not in verbs:
                raise RefusedError("The helper does not know this request.")  # noqa: TRY301 - answered below
            who = person(request.get("user"), self._settings)
            return {"ok": True, **verbs[request["do"]](who, request)}
        except (RefusedError, NotAllowedError) as problem:
            return {"ok": False, "refused": True, "why": str(problem)}
        except (OSError, subprocess.TimeoutExpired, SlurmError) as problem:
            return {"ok": False, "refused": False, "why": str(problem)[-500:]}

    def login(self, who: Person, request: Mapping[str, Any]) -> dict[str, Any]:
        """Whether a password is this person's, and the account open."""
        password = request.get("password")
        if not isinstance(password, str) or not password or "\0" in password or len(password) > 1024:  # noqa: PLR2004
            raise RefusedError("The password is wrong.")
        if why := _pam(who.name, password):
            raise RefusedError(why)
        return {"admin": who.is_admin}

    def known(self, who: Person, _: Mapping[str, Any]) -> dict[str, Any]:
        """Whether somebody of whom others said who they are has an account that is open."""
        if why := _closed(who.name):
            raise RefusedError(why)
        return {"admin": who.is_admin}

    def offers(self, who: Person, _: Mapping[str, Any]) -> dict[str, Any]:
        """What this person may ask for."""
        may = self._offers(who)
        return {
            "admin": who.is_admin,
            "accounts": {name: list(qos) for name, qos in may.accounts.items()},
            "nodes": list(may.nodes),
            "partitions": [
                {
                    "name": each.name,
                    "minutes": each.minutes,
                    "gpus": dict(each.gpus),
                    "accounts": None if each.accounts is None else sorted(each.accounts),
                    "denied": sorted(each.denied),
                    "qos": None if each.qos is None else sorted(each.qos),
                }
                for each in may.partitions.values()
            ],
        }

    def _offers(self, who: Person, changed: Mapping[str, Any] | None = None) -> Offers:
        is_check = who.name == self._settings["validation_user"]
        # Its partition is called as it is, and listed for nobody.
        hidden = ["--all"] if is_check else []
        partitions = self._slurm(who, ["scontrol", *hidden, "--oneliner", "show", "partition"])
        gres = self._slurm(who, ["sinfo", *hidden, "--noheader", "--Node", "--format=%P %G %N"])
        fields = "format=account,partition,qos,defaultqos"
        associations = self._slurm(
            who,
            ["sacctmgr", "--noheader", "--parsable2", "show", "assoc", "where", f"user={who.name}", fields],
        )
        limits = {**self._settings, **(changed or {})}
        if is_check:
            # Others, which are all listed for it, may be closed to it or want GPUs.
            has_own = f"PartitionName={who.name} " in partitions
            limits["partitions"] = [who.name] if has_own else []
        return offers(partitions, gres, associations, limits)

    def submit(self, who: Person, request: Mapping[str, Any]) -> dict[str, Any]:
        """Starts a server as a job; one that is still there of an earlier one is cancelled."""
        form, variables = request.get("choices"), request.get("environment")
        if not isinstance(form, dict) or not isinstance(variables, dict):
            raise RefusedError("The helper does not know this request.")
        choices = chosen(form, self._offers(who), self._settings)
        for name, value in variables.items():
            if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
                raise RefusedError("A server gets no such variable.")
            if not isinstance(value, str) or "\0" in value or len(value) > _LONGEST_VALUE:
                raise RefusedError("A variable of a server has an unfit value.")
        for job in queued(self._slurm(who, ["squeue", "--noheader", "--me", f"--format={LINE}"])):
            if job.comment == COMMENT:
                self._slurm(who, ["scancel", job.number])
        script = self._script(who, choices)
        argv = [
            *("sbatch", "--parsable", "--nodes=1", "--ntasks=1", "--no-requeue", "--export=ALL"),
            *("--job-name=jupyter", f"--comment={COMMENT}", f"--chdir={who.home}", "--open-mode=truncate"),
            f"--output={who.home}/.slurm-portal.log",
            *choices.arguments(),
        ]
        said = self._slurm(who, argv, text=script, variables=variables)
        number = said.strip().split(";")[0]
        if not _JOB.fullmatch(number):
            raise SlurmError(f"sbatch said: {said.strip()[:200]}")
        return {"job": number}

    def _script(self, who: Person, choices: Choices) -> str:
        names = {name: self._settings[name] for name in ("program", "apps")}
        found = [each for each in self._settings["environments"] if each["name"] == choices.environment]
        image = choices.image if choices.environment == OWN_IMAGE else found[0].get("image", "")
        if image:
            srun = shlex.join(_srun(who, choices, image, str(Path(names["program"]).parent)))
            return _IN_IMAGE.format(srun=srun, place=Path(names["program"]).parent, **names)
        modules = "".join(f"module load {_module(name)} || exit 1\n" for name in found[0]["modules"])
        return _SCRIPT.format(modules=modules, python=self._settings["python"], **names)

    def job(self, who: Person, request: Mapping[str, Any]) -> dict[str, Any]:
        """What Slurm says of a job of this person."""
        number = _number(request)
        argv = ["squeue", "--noheader", "--me", "--states=all", f"--jobs={number}", f"--format={LINE}"]
        try:
            found = queued(self._slurm(who, argv))
        except SlurmError as problem:
            if "Invalid job id" not in str(problem):
                raise
            found = []
        if found and found[0].state == "FAILED":
            said = fields(self._slurm(who, ["scontrol", "show", "job", number]))
            found[0] = replace(found[0], code=exit_code(said.get("ExitCode", "")))
        return {
            "job": (found or self._ended(who, [f"--jobs={number}"]) or [Job(number, state="UNKNOWN")])[
                0
            ].shown()
        }

    def jobs(self, who: Person, _: Mapping[str, Any]) -> dict[str, Any]:
        """The jobs of this person, and those of the last days, with what they used."""
        now = queued(self._slurm(who, ["squeue", "--noheader", "--me", f"--format={LINE}"]))
        done = [job for job in self._ended(who, ["--starttime=now-3days"]) if job.is_over]
        done = done[: -_MOST_ENDED - 1 : -1]
        used = self._used(who, [job.number for job in (*now, *done)])
        scripts = self._with_script(who)
        return {
            "jobs": [{**job.shown(), "used": used.get(job.number)} for job in now],
            "ended": [
                {**job.shown(), "used": used.get(job.number), "again": job.number in scripts} for job in done
            ],
        }

    def _used(self, who: Person, numbers: list[str]) -> dict[str, dict[str, float | None]]:
        """By job the percents that seff says."""
        known = [number for number in numbers if _ENDED_JOB.fullmatch(number)]
        said = self._said(who, ["seff", "--json", *known]) if known else None
        return {job["job"]: job["efficiency"] for job in said or [] if job["elapsed_seconds"]}

    def _with_script(self, who: Person) -> set[str]:
        """The jobs whose script Slurm has still; those of the portal are started by its form."""
        argv = ["squeue", "--noheader", "--me", "--states=all"]
        batch = "--Format=jobarrayid:64,batchflag:8,comment:64"
        try:
            lines = self._slurm(who, [*argv, batch]).splitlines()
        except SlurmError:
            return set()
        rows = [line.split() for line in lines]
        return {row[0] for row in rows if row[1:2] == ["1"] and COMMENT not in row[2:]}

    def cluster(self, who: Person, _: Mapping[str, Any]) -> dict[str, Any]:
        """The cluster as this person may see it, with what their projects and they may use."""
        nodes = self._slurm(who, ["sinfo", "--noheader", "--Node", f"--Format={NODES}"])
        planned = self._slurm(who, ["scontrol", "--oneliner", "show", "reservation"])
        budgets = self._said(who, ["show-budget", "--json"])
        return {
            "partitions": partitions(nodes),
            "reservations": reservations(planned),
            "budgets": budgets["budgets"] if budgets else [],
            "quotas": self._said(who, ["show-quotas", "--json"]) or [],
            "templates": [each.shown() for each in templates(self._offers(who), self._settings)],
        }

    def _said(self, who: Person, argv: list[str]) -> Any:  # noqa: ANN401 - JSON
        """What a user's command says, which a site need not have; None where it says nothing."""
        try:
            return json.loads(self._slurm(who, argv))
        except (OSError, ValueError, SlurmError, subprocess.TimeoutExpired):
            return None

    def cancel(self, who: Person, request: Mapping[str, Any]) -> dict[str, Any]:
        """Ends a job of this person; Slurm refuses those of others."""
        self._slurm(who, ["scancel", _number(request, _TASK)])
        return {}

    def again(self, who: Person, request: Mapping[str, Any]) -> dict[str, Any]:
        """Submits the script of a job of theirs once more, with its options, if they have these still."""
        number = _number(request, _ENDED_JOB)
        try:
            job = fields(self._slurm(who, ["scontrol", "show", "job", number]))
            # An operator may read scripts of others.
            if job.get("UserId") != f"{who.name}({who.uid})":
                raise RefusedError("This is no job of yours.")
            if job.get("Comment") == COMMENT:
                raise RefusedError("A server is started by the form of the portal.")
            script = self._slurm(who, ["scontrol", "write", "batch_script", number, "-"])
        except SlurmError:
            raise RefusedError(
                f"Slurm has the script of job {number} no more; submit it with sbatch on a login node."
            ) from None
        options = arguments(job, self._offers(who, {"partitions": []}))
        argv = ["sbatch", "--parsable", "--get-user-env", *options]
        try:
            said = self._slurm(who, argv, text=script)
        except SlurmError as problem:
            raise RefusedError(f"Slurm does not take job {number} again: {problem}") from None
        return {"job": said.strip().split(";")[0]}

    def template(self, who: Person, request: Mapping[str, Any]) -> dict[str, Any]:
        """Submits a script of the site's, for a partition of theirs."""
        found = one_of(self._offers(who), self._settings, request.get("name"), request.get("partition"))
        argv = ["sbatch", "--parsable", "--get-user-env", f"--chdir={who.home}"]
        try:
            said = self._slurm(who, argv, text=found.script)
        except SlurmError as problem:
            raise RefusedError(f"Slurm does not take this job: {problem}") from None
        return {"job": said.strip().split(";")[0]}

    def _ended(self, who: Person, which: list[str]) -> list[Job]:
        argv = ["sacct", "--noheader", "--parsable2", "--allocations", f"--user={who.name}", *which]
        try:
            return ended(self._slurm(who, [*argv, f"--format={ENDED}"]))
        except SlurmError:
            # Without its database Slurm knows the jobs that are there, and has forgotten the others.
            return []

    def _slurm(
        self, who: Person, argv: list[str], text: str = "", variables: Mapping[str, str] | None = None
    ) -> str:
        environment = {
            **_slurm_settings(),
            **(variables or {}),
            "PATH": self._path,
            "HOME": who.home,
            "USER": who.name,
            "LOGNAME": who.name,
            "SHELL": who.shell or "/bin/sh",
            "LANG": "C.UTF-8",
            "SLURM_TIME_FORMAT": "standard",
            # Lists of an array's tasks are whole.
            "SLURM_BITSTR_LEN": "0",
        }
        done = subprocess.run(
            argv,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
            cwd="/",
            env=environment,
            start_new_session=True,
            **_as(who),
        )
        if done.returncode != 0:
            raise SlurmError(f"{argv[0]}: {done.stderr.strip()[-300:] or done.returncode}")
        return done.stdout


class SlurmError(Exception):
    """A command of Slurm that failed; its words."""


def _slurm_settings(path: Path = Path("/etc/environment")) -> dict[str, str]:
    """Where Slurm's commands have their configuration from, where a login node is told that."""
    if not path.exists():
        return {}
    found = re.findall(r"^SLURM_CONF_SERVER=(\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {"SLURM_CONF_SERVER": found[-1].strip("\"'")} if found else {}


def _as(who: Person) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    return {"user": who.uid, "group": who.gid, "extra_groups": list(who.groups)}


def _number(request: Mapping[str, Any], kind: re.Pattern[str] = _JOB) -> str:
    number = request.get("job")
    if not isinstance(number, str) or not kind.fullmatch(number):
        raise RefusedError("This is no number of a job.")
    return number


def _srun(who: Person, choices: Choices, image: str, place: str) -> list[str]:
    """The server in a container: as its user, with home, and what starts it."""
    if not is_image(image):
        raise RefusedError(f"The portal's settings name an image that is none: {image[:60]!r}")
    return [
        *("srun", "--quiet", "--nodes=1", "--ntasks=1", f"--cpus-per-task={choices.cpus}", "--export=ALL"),
        *(f"--container-image={image}", "--container-mount-home", f"--container-workdir={who.home}"),
        *("--no-container-remap-root", "--no-container-entrypoint", f"--container-mounts={place}:{place}:ro"),
    ]


def _module(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*", name):
        raise RefusedError(f"The portal's settings name a module that is none: {name[:60]!r}")
    return name


def _pam(name: str, password: str) -> str:
    """Empty where PAM lets this person in, else why not, in words that tell nothing to others."""
    import pamela  # noqa: PLC0415 - of the hub's environment; nothing else needs it

    try:
        pamela.authenticate(name, password, service=PAM_SERVICE)
    except pamela.PAMError:
        return "The name or the password is wrong."
    return _closed(name)


def _closed(name: str) -> str:
    """Empty where PAM lets this account in, else why not."""
    import pamela  # noqa: PLC0415 - as above

    try:
        pamela.check_account(name, service=PAM_SERVICE)
    except pamela.PAMError:
        return "The account is closed, or its password has to be changed: log in with ssh, which says why."
    return ""


def serve(source: BinaryIO, sink: BinaryIO, settings: Mapping[str, Any]) -> None:
    """Answers one request."""
    line = source.readline(_LONGEST)
    try:
        request = json.loads(line)
    except ValueError:
        request = None
    sink.write(json.dumps(Helper(settings).answer(request)).encode() + b"\n")
    sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer, json.loads(SETTINGS.read_text(encoding="utf-8")))
