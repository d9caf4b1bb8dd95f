"""``deploy drill``: the last backup, restored into a lab of the same shape, and a report of it."""

import contextlib
import getpass
import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from deploy import __version__
from deploy.cli.consent import go_on
from deploy.cli.displays import Output, choose_display
from deploy.cli.files import not_writable, refuse_unwritable
from deploy.cli.parameters import AsData, ExtraVariables, Inventory, VaultPasswordFile, say
from deploy.cli.quick_validation import validate_quickly
from deploy.durable import replace_file
from deploy.engine import drill as chosen
from deploy.engine.backup import cluster_name
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode, shown_path
from deploy.lab.drill import Drill, in_shape
from deploy.lab.rehearsed_site import Rehearsed, vaulted
from deploy.lab.stage import default_name, staged
from deploy.lab.state import need_lab
from deploy.show.drill import drill_lines
from deploy.site.checks import check_site
from deploy.site.inventory import Site, read_site
from deploy.site.node_lists import fold
from deploy.site.variables import read_extra_variables
from deploy.validate.record import as_data

_NOT_OF_CONTAINERS = ("speed",)
_NOT_DEPLOYED = "deploy cluster failed on the machines of the lab; what it said is above"
_NEVER_TRIED = (
    "real machines: their disks, drivers and networks; and a controller that has no packages yet",
    "jobs that ran when the backup was made: all jobs were ended after the comparison, none was started",
    "deploy's records in the backup (drains, hosts) and hardware.yml: they speak of the real machines",
    "what no backup has: home directories, shared storage, containers, metrics, archives of slurmdbd",
)


def drill(
    inventory: Inventory,
    archive: Annotated[
        Path | None,
        typer.Argument(metavar="[BACKUP]", exists=True, dir_okay=False, help="By default the newest one."),
    ] = None,
    *,
    identity: Annotated[
        list[Path],
        typer.Option(
            "--identity", "-i", exists=True, dir_okay=False, help="A private key that decrypts; repeatable."
        ),
    ],
    directory: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="DIR", file_okay=False, help="Where backups are; default: beside the inventory."
        ),
    ] = None,
    reports: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="DIR", file_okay=False, help="Where the report goes; default: `drills` there."
        ),
    ] = None,
    max_age: Annotated[int, typer.Option(min=1, help="Refuse a backup that is older, in days.")] = 7,
    name: Annotated[str | None, typer.Option(help="Name of the lab.", show_default="drill-DIRECTORY")] = None,
    release: Annotated[str, typer.Option(help="trixie or bookworm.")] = "trixie",
    most: Annotated[
        int, typer.Option("--nodes", min=1, help="The most machines of each kind of node and login node.")
    ] = 2,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the machines running afterwards.")] = False,
    as_json: AsData = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Restore the last backup into a lab of the same shape, compare it with its manifest, and report.

    The machines are local containers, as of `deploy rehearse`: all controllers, the database's host, and
    --nodes of each other kind. They get a cluster with the secrets of the backup, then lose every route to
    elsewhere, then get its database and its state. What Slurm has is compared with what the manifest says,
    before a node could start a job; then the jobs are ended, the nodes come, and the cluster is validated,
    quickly. The real cluster is not connected to, and no job of users runs.

    A backup that is missing, cut off, altered, too old, or made for another key is refused before a machine
    is made, exit code 2. Afterwards all is removed, unless --keep is given. The report is a text and a JSON
    file in a directory of its own. Exit code 0: all is as the manifest says, and the validation found nothing
    wrong.

    Examples:
      deploy drill inventory.ini --identity backup.key
      deploy drill inventory.ini backups/cluster-20270101T020000Z.age --identity backup.key --nodes 1
      deploy drill inventory.ini --identity backup.key --from /mnt/backups --report /srv/audit --json

    """
    variables = read_extra_variables(tuple(extra or ()))
    site = read_site(inventory, vault_password_file=vault_password_file, extra_variables=variables)
    for warning in check_site(site, reads_secrets=False):
        say(str(warning))
    path = archive or chosen.last_backup(site.resolved, directory)
    opened = chosen.archive_of(site.resolved, path, tuple(identity), max_age)
    place = _writable(reports or site.directory / chosen.REPORTS)
    what, lab = in_shape(site, most), name or default_name(site, "drill")
    say(f"drill of {shown_path(path)} as lab {lab}: {len(what.hosts)} machines")
    work = _Work(site, what, opened, release, Options(vault_password_file=vault_password_file))
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        try:
            work.perform(lab, is_kept=keep)
        except DeployError as problem:
            if not work.is_begun:
                raise
            work.problem, work.exit_code = str(problem), problem.exit_code
        except typer.Exit as ended:
            work.problem, work.exit_code = _NOT_DEPLOYED, ExitCode(ended.exit_code)
    report = work.report()
    text = "\n".join(drill_lines(report)) + "\n"
    typer.echo(json.dumps(report, indent=1) + "\n" if as_json else text, nl=False)
    say(f"report: {_kept(place, text, report)}")
    raise typer.Exit(work.exit_code)


@dataclass
class _Work:
    """What is done, and what came of it until now."""

    site: Site
    what: Rehearsed
    archive: chosen.Archive
    release: str
    options: Options
    began: float = field(default_factory=time.time)
    about: dict[str, Any] = field(default_factory=dict)
    apart: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    exit_code: ExitCode = ExitCode.FAILED
    _steps: list[tuple[str, float]] = field(default_factory=list)
    _drill: Drill | None = None

    def __post_init__(self) -> None:
        self.about = chosen.about(self.archive)

    @property
    def is_begun(self) -> bool:
        """Whether there was a lab; without one there is nothing to report."""
        return self._drill is not None

    def perform(self, lab: str, *, is_kept: bool) -> None:
        """Makes the lab, drills, takes it away. Raises DeployError, and typer.Exit of `deploy cluster`."""
        since = time.monotonic()
        try:
            with staged(self.what, lab, self.release, say, is_kept=is_kept) as inventory:
                since = self._took("machines booted", since)
                self._drill = Drill(need_lab(lab), read_site(inventory), self.archive, say, self._steps)
                try:
                    self._restore(self._drill, inventory)
                finally:
                    since = time.monotonic()
        finally:
            self._took("machines kept" if is_kept else "machines removed", since)

    def _took(self, step: str, since: float) -> float:
        now = time.monotonic()
        self._steps.append((step, now - since))
        return now

    def _restore(self, drill: Drill, inventory: Path) -> None:
        drill.archive, secrets = chosen.restorable(self.archive)
        with drill.step("cluster deployed, with the secrets of the backup"):
            drill.share_state()
            drill.give_secrets(secrets, self.options.vault_password_file)
            self._deploys(inventory, self.options)
        with drill.step("routes to elsewhere taken away"):
            self.apart = drill.cut_off(self.site)
        with drill.step("state and database restored, Slurm started"):
            drill.restore(self.options, lambda options: self._deploys(inventory, options))
        with drill.step("compared with the manifest"):
            drill.compare()
            drill.clear()
        with drill.step("cluster deployed with what was restored"):
            self._deploys(inventory, self.options)
        with drill.step("validated"):
            found = validate_quickly(inventory, self.options, as_data=False, without=_NOT_OF_CONTAINERS)
        self.validation = as_data(found)
        self.exit_code = found.exit_code if drill.is_as_said else ExitCode.FAILED

    @staticmethod
    def _deploys(inventory: Path, options: Options) -> None:
        summary = deploy_cluster(inventory, options, choose_display(Output.PLAIN, options), go_on, say)
        if summary.exit_code is not ExitCode.OK:
            raise typer.Exit(summary.exit_code)

    def report(self) -> dict[str, Any]:
        """All of it, as data."""
        drill = self._drill
        return {
            "cluster": cluster_name(self.site.resolved),
            "outcome": "passed" if self.exit_code is ExitCode.OK else "failed",
            "exit_code": int(self.exit_code),
            "at": round(self.began),
            "deploy": __version__,
            "by": f"{getpass.getuser()} on {socket.gethostname()}",
            "problem": self.problem,
            "backup": self.about,
            "lab": {
                "release": self.release,
                "machines": [host.name for host in self.what.hosts],
                "left_out": [*self.what.left_out],
                "apart": self.apart,
                "resumed": [*drill.resumed] if drill else [],
            },
            "steps": [{"step": step, "seconds": round(took, 1)} for step, took in self._steps],
            "compared": [asdict(row) for row in drill.compared] if drill else [],
            "validation": self.validation,
            "not_tried": [*_NEVER_TRIED, *self._not_tried()],
        }

    def _not_tried(self) -> Iterator[str]:
        if not self.about["has_secrets"]:
            yield "secrets: the backup, made by the controller itself, has none; the lab had new ones"
        if self.what.left_out:
            yield f"hosts that have no machine in the lab (--nodes): {fold(self.what.left_out)}"
        if names := vaulted(self.what):
            yield f"variables in the vault: {', '.join(names)}"


def _writable(place: Path) -> Path:
    """A directory for reports. Raises DeployError ``file-not-writable``."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise not_writable(place, problem.strerror or str(problem)) from None
    refuse_unwritable(place / "report")
    return place


def _kept(place: Path, text: str, report: Mapping[str, Any]) -> str:
    """The name of the text; the file for programs lies beside it."""
    name = time.strftime(chosen.REPORT, time.gmtime(report["at"]))
    replace_file(place / f"{name}.json", json.dumps(report, indent=1) + "\n")
    replace_file(place / f"{name}.txt", text)
    return shown_path(place / f"{name}.txt")
