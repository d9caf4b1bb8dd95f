"""The hosts that the cluster has had: remembered on its controllers, asked when the inventory lost them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deploy.engine.options import Options
from deploy.judge.departed import Departed, departed_hosts, remembered
from deploy.judge.moved_controller import Moved, Queue
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Host, Site
from deploy.site.secrets import read_secrets, secrets_file

Known = Mapping[str, Mapping[str, Any]]
"""What is remembered of hosts, by name."""


@dataclass(frozen=True)
class Members:
    """A site's hosts of then and now. Controllers keep the list, so losing the site loses nothing."""

    site: Site
    options: Options

    def known(self, looks: Mapping[str, Any]) -> dict[str, Known]:
        """What each controller remembers that answered; of ``looks`` (``host_records.look``) by host."""
        controllers = {host.name for host in self.site.controllers}
        return {
            name: look["hosts"]
            for name, look in looks.items()
            if name in controllers and not isinstance(look, Unanswered)
        }

    def hosts(self, known: Mapping[str, Known]) -> dict[str, Host]:
        """The remembered hosts that left."""
        return departed_hosts(self.site, _together(known))

    def departed(self, known: Mapping[str, Known]) -> list[Departed]:
        """The remembered hosts that left, as they are now."""
        hosts = self.hosts(known)
        answers = self.ask({name: ("holds", {"key": self._key()}) for name in hosts}, hosts)
        return [
            Departed(name, why=answer.why)
            if isinstance(answer, Unanswered)
            else Departed(name, tuple(answer))
            for name, answer in answers.items()
        ]

    def remember(
        self, known: Mapping[str, Known], hosts: Iterable[str], gone: Iterable[str] = ()
    ) -> dict[str, Known]:
        """Has controllers remember the hosts of a run, and those that left and are not gone.

        ``known`` is what each remembered until now; what each remembers then is returned.
        """
        old = _together(known)
        left = departed_hosts(self.site, old).keys() - {*gone}
        # Those that other runs brought into the cluster stay known, too.
        here = {host.name for host in self.site.cluster} & {*hosts, *old}
        wanted = {
            **{name: entry for name, entry in old.items() if name in left},
            **remembered(self.site.hosts[name] for name in sorted(here)),
        }
        changed = {name: ("know", {"hosts": wanted}) for name, entries in known.items() if entries != wanted}
        answers = ask(changed, self.site.hosts, self.options.login, self.options.forks)
        return {
            name: entries if isinstance(answers.get(name), Unanswered) else wanted
            for name, entries in known.items()
        }

    def forget(self, known: Mapping[str, Known], name: str) -> dict[str, Any]:
        """Has controllers forget a host; what they answer."""
        without = {other: entry for other, entry in _together(known).items() if other != name}
        questions = {master: ("know", {"hosts": without}) for master in known}
        return ask(questions, self.site.hosts, self.options.login, self.options.forks)

    def queue(self, moved: Moved) -> Queue:
        """The jobs of the cluster whose controller moves; None where nobody can say which there are."""
        answer = self.ask({moved.witness: ("queue", {"configuration": moved.file})}, self.site.hosts)
        jobs: Queue | Unanswered = answer[moved.witness]
        return None if isinstance(jobs, Unanswered) else jobs

    def leave(self, host: Host) -> Any:  # noqa: ANN401 - what on_departed.leave returns, or Unanswered
        """Takes from a host that left what makes it a member."""
        return self.ask({host.name: ("leave", {"key": self._key()})}, {host.name: host})[host.name]

    def ask(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]], hosts: Mapping[str, Host]
    ) -> dict[str, Any]:
        """What hosts answer to verbs of ``run/on_departed.py``."""
        return ask(questions, hosts, self.options.login, self.options.forks, "on_departed")

    def _key(self) -> str | None:
        """The hash of the cluster's munge key; None where it is not known here."""
        secrets = read_secrets(secrets_file(self.site), self.options.vault_password_file)
        key = self.site.controller.variables.get("munge_key", secrets.get("munge_key"))
        is_plain = isinstance(key, str) and "{{" not in key and not key.startswith("$ANSIBLE_VAULT")
        return hashlib.sha256(str(key).encode()).hexdigest() if is_plain else None


def _together(known: Mapping[str, Known]) -> dict[str, Mapping[str, Any]]:
    return {name: entry for entries in known.values() for name, entry in entries.items()}
