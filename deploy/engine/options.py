"""What the admin typed behind a verb, and what of it Ansible is told."""

import os
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

from deploy.run.settings import Settings, is_plain_wanted
from deploy.run.ssh import Login
from deploy.site.listing_process import ListingProcess
from deploy.site.variables import shown_extra_variables


@dataclass
class Rotation:
    """The secrets that a run replaces by others, and whether the site has those already."""

    names: tuple[str, ...] = ()
    is_done: bool = False

    @property
    def pending(self) -> tuple[str, ...]:
        """Those of which the site still has the one of before."""
        return () if self.is_done else self.names


@dataclass(frozen=True)
class Options:
    """What the admin typed behind a verb."""

    # Where, and which tasks there.
    limit: str | None = None
    tags: str | None = None
    skip_tags: str | None = None
    # What is done.
    check: bool = False
    full: bool = False
    new_secrets: bool = False
    rotation: Rotation = field(default_factory=Rotation)
    batch: str | None = None
    may_lose_jobs: bool = False
    # How hosts are reached.
    user: str | None = None
    private_key: Path | None = None
    connection_password: str | None = field(default=None, repr=False)
    become_password: str | None = field(default=None, repr=False)
    forks: int | None = None
    plain_ansible: bool = False
    # What variables are, and what opens them.
    extra: tuple[str, ...] = ()
    vault_password_file: Path | None = None
    # What is shown.
    diff: bool = False
    verbose: int = 0
    # What was not typed.
    listing: ListingProcess | None = field(default=None, repr=False, compare=False)
    """An Ansible that was started to read the inventory."""
    line: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv[1:]), repr=False, compare=False)
    """The command line itself, to be recorded."""
    typed: "Options | None" = field(default=None, repr=False, compare=False)
    """What was typed, where these are of one part of it."""

    @property
    def typed_secrets(self) -> str:
        """What to type again behind the inventory, so that the same secrets are replaced."""
        if self.rotation.pending:
            return "".join(f" --rotate {name}" for name in self.rotation.pending)
        return " --new-secrets" * self.new_secrets

    def again(self, limit: str | None = None) -> str:
        """What to type behind the inventory for the same run; on other hosts with a ``limit``, or all.

        Values that may be secret are not in it; what stands in their place is refused.
        """
        if self.typed:
            return self.typed.again(limit)
        words = self._given("--tags", "--skip-tags", "--user", "--private-key", "--vault-password-file")
        words += self._given("--forks", "--batch")
        words += ["--ask-pass"] * bool(self.connection_password)
        words += ["--ask-become-pass"] * bool(self.become_password)
        words += ["--plain-ansible"] * self.plain_ansible + ["--full"] * self.full
        words += [word for text in self.extra for word in ("-e", shown_extra_variables(text))]
        chosen = self.limit if limit is None else limit
        limited = f" --limit {shlex.quote(chosen)}" if chosen else ""
        return limited + "".join(f" {shlex.quote(word)}" for word in words) + self.typed_secrets

    @property
    def is_whole(self) -> bool:
        """Whether all tasks of a phase are run, so that it can be called converged."""
        return not (self.tags or self.skip_tags)

    @property
    def converges(self) -> bool:
        """Whether what runs is whole phases, really done, so that hosts may keep records of them."""
        return self.is_whole and not self.check

    @property
    def settings(self) -> Settings:
        """The settings of Ansible."""
        return Settings(forks=self.forks, plain=self.plain_ansible or is_plain_wanted())

    @property
    def login(self) -> Login:
        """How plain ssh logs in."""
        return Login(
            user=self.user,
            private_key=str(self.private_key) if self.private_key else None,
            asks_for_passwords=bool(self.connection_password or self.become_password),
            environment=os.environ,
        )

    def connection(self) -> list[str]:
        """The options of ansible-playbook that say how hosts are reached."""
        return self._given("--user", "--private-key", "--vault-password-file")

    def playbook(self) -> list[str]:
        """The options of ansible-playbook that say what is done."""
        given = self._given("--tags", "--skip-tags")
        given += ["--check"] * self.check + ["--diff"] * self.diff
        return given + ["-" + "v" * self.verbose] * bool(self.verbose)

    def _given(self, *options: str) -> list[str]:
        """Those that have a value, with it; Ansible calls them as they are called here."""
        values = [(option, getattr(self, option.removeprefix("--").replace("-", "_"))) for option in options]
        return [word for option, value in values if value is not None for word in (option, str(value))]
