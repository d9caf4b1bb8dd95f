"""What the admin typed behind a verb, and what of it Ansible is told."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from deploy.run.settings import Settings, is_plain_wanted
from deploy.run.ssh import Login
from deploy.site.listing_process import ListingProcess


@dataclass(frozen=True)
class Options:
    """What the admin typed behind a verb."""

    limit: str | None = None
    tags: str | None = None
    skip_tags: str | None = None
    check: bool = False
    full: bool = False
    diff: bool = False
    new_secrets: bool = False
    user: str | None = None
    private_key: Path | None = None
    forks: int | None = None
    extra: tuple[str, ...] = ()
    verbose: int = 0
    vault_password_file: Path | None = None
    plain_ansible: bool = False
    connection_password: str | None = field(default=None, repr=False)
    become_password: str | None = field(default=None, repr=False)
    listing: ListingProcess | None = field(default=None, repr=False, compare=False)
    """An Ansible that was started to read the inventory."""
    line: tuple[str, ...] = field(default_factory=lambda: tuple(sys.argv[1:]), repr=False, compare=False)
    """The command line itself, to be recorded."""

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
        given: list[str] = []
        for option, value in (
            ("--user", self.user),
            ("--private-key", self.private_key),
            ("--vault-password-file", self.vault_password_file),
        ):
            if value is not None:
                given += [option, str(value)]
        return given

    def playbook(self) -> list[str]:
        """The options of ansible-playbook that say what is done."""
        given: list[str] = []
        for option, value in (("--tags", self.tags), ("--skip-tags", self.skip_tags)):
            if value is not None:
                given += [option, value]
        given += ["--check"] * self.check + ["--diff"] * self.diff
        return given + ["-" + "v" * self.verbose] * bool(self.verbose)
