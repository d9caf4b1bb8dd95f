"""What the verbs that run a playbook on a site have in common: whom it is for, and what Ansible is told."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.cli.options import Options
from deploy.content import playbook
from deploy.errors import ExitCode, Finding, error
from deploy.judge.summary import Outcome, summarize
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event, HostResult
from deploy.run.execute import EarlyStart, RunRequest, execute
from deploy.run.settings import Settings, ansible_environment
from deploy.site.checks import check_site
from deploy.site.inventory import Site, existing_inventory, read_site
from deploy.site.node_lists import unfold
from deploy.site.schema import options as options_of_roles
from deploy.site.variables import read_extra_variables


@dataclass(frozen=True)
class OpenSite:
    """A site that was read and found right, and the Ansible for its runs."""

    site: Site
    warnings: tuple[Finding, ...]
    ansible: EarlyStart


@contextmanager
def open_site(
    inventory: Path, options: Options, settings: Settings, *, needs_ansible: bool = True
) -> Iterator[OpenSite]:
    """Reads and checks a site. Raises DeployError when it is wrong, before the first connection."""
    variables = read_extra_variables(options.extra)
    environment = ansible_environment(settings)
    with EarlyStart(environment, existing_inventory(inventory), at_once=needs_ansible) as ansible:
        # While Ansible reads the inventory there is time for the roles' variables.
        threading.Thread(target=options_of_roles, daemon=True).start()
        vault = options.vault_password_file
        site = read_site(inventory, vault_password_file=vault, extra_variables=variables)
        yield OpenSite(site, tuple(check_site(site, vault)), ansible)


def limited(site: Site, options: Options) -> frozenset[str] | None:
    """The hosts that ``--limit`` names; None without it. Raises DeployError ``limit-matches-nothing``."""
    if options.limit is None:
        return None
    limit = unfold(options.limit, site.hosts)
    chosen = read_site(site.inventory, limit=limit, vault_password_file=options.vault_password_file)
    return frozenset(chosen.hosts)


def run_request(
    name: str,
    generated: Path,
    *,
    site: Site,
    options: Options,
    settings: Settings,
    variable_files: tuple[Path, ...] | None = None,
) -> RunRequest:
    """A run of ``playbooks/<name>.yml``; without variable files it looks, and never changes."""
    arguments = options.connection()
    if variable_files is not None:
        arguments += options.playbook()
    for text in options.extra:
        absolute = f"@{Path(text[1:]).resolve()}" if text.startswith("@") else text
        arguments += ["--extra-vars", absolute]
    return RunRequest(
        playbook=playbook(name),
        inventories=(site.inventory, generated),
        variable_files=variable_files or (),
        arguments=tuple(arguments),
        environment=ansible_environment(settings),
        connection_password=options.connection_password,
        become_password=options.become_password,
    )


def answers(
    request: RunRequest, asked: Iterable[str], site: Site, ansible: EarlyStart
) -> dict[str, HostResult]:
    """The result of every host in a playbook of one task that only looks; nothing is shown or recorded.

    ``ansible`` was started while the site was read.
    Raises DeployError ``hosts-not-asked`` when Ansible itself cannot run it.
    """
    events: list[Event] = []
    with signals_cancel() as cancellation:
        execute(request, events.append, cancellation, ansible)
    refuse_silence(events, asked, site)
    return {event.host: event for event in events if isinstance(event, HostResult)}


def refuse_silence(
    events: Iterable[Event], asked: Iterable[str], site: Site, exit_code: ExitCode | None = None
) -> None:
    """Raises KeyboardInterrupt when the asking was interrupted, else DeployError ``hosts-not-asked``.

    That is when Ansible itself could not run; a host that gives no answer is no such thing. ``exit_code`` is
    that of the run where none is given.
    """
    summary = summarize(events, asked)
    if summary.outcome is Outcome.INTERRUPTED:
        raise KeyboardInterrupt
    if summary.trouble:
        raise error(
            "hosts-not-asked",
            "Ansible could not ask the hosts: " + " ".join(summary.trouble),
            where=str(site.inventory),
            hint=f"ansible -i {shown_path(site.inventory)} all -m ping",
            exit_code=exit_code or summary.exit_code,
        )


def shown_path(path: Path) -> str:
    """A path as one would type it here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
