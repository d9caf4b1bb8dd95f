"""What the admin typed behind a verb, and what of it Ansible is told."""

import getpass
from dataclasses import dataclass, field
from pathlib import Path


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
    connection_password: str | None = field(default=None, repr=False)
    become_password: str | None = field(default=None, repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether all tasks of a phase are run, so that it can be called converged."""
        return not (self.tags or self.skip_tags)

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


def ask_password(what: str, *, is_wanted: bool) -> str | None:
    """Asks on the terminal, where it is wanted."""
    return getpass.getpass(f"{what} password: ") if is_wanted else None
