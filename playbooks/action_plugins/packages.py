"""Action plugin: packages that a role needs, installed or removed. Roles install theirs in no other way.

Arguments: ``name``, a list of packages, each with ``=VERSION`` where the site chose one, which may be older
than what is there; ``state``, present or absent. What runs is Ansible's own apt, without what packages merely
recommend, and so that no daemon starts: each starts once, with its configuration, by service_current.

Packages of which apt_ready said that they are there (the fact ``deb_packages``) are left alone without asking
the host: opening apt's cache takes a third of a second. Where check mode would first add the source of a
package (``deb_source_pending``), apt cannot know it yet, and it counts as one that would be installed.
"""

from typing import Any

from ansible.plugins.action import ActionBase

_SECONDS = 300  # for another package manager
_STARTS_NOTHING = 101
_REMOVED = {"state": "absent", "purge": True}
_INSTALLED = {
    "state": "present",
    "install_recommends": False,
    "policy_rc_d": _STARTS_NOTHING,
}


class ActionModule(ActionBase):  # type: ignore[misc]
    """Looks at what is known of the host, then runs apt there."""

    @staticmethod
    def ends_at_once(told: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any] | None:
        """The result of a task that needs neither host nor process (deploy/run/skipped_here.py asks)."""
        facts, names = task_vars.get("ansible_facts", {}), set(told["name"])
        there = set(facts.get("deb_packages", ()))
        if told.get("state", "present") == "present":
            why = "the packages are there" if names <= there else ""
        else:
            why = "there is none of the packages" if there and not names & there else ""
        return {"changed": False, "skipped": True, "skip_reason": why} if why else None

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer of apt with ``deploy_manages``; a skipped task where nothing is missing."""
        super().run(tmp, task_vars)
        _, told = self.validate_argument_spec(
            {
                "name": {"type": "list", "elements": "str", "required": True},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            }
        )
        at_once = self.ends_at_once(told, task_vars or {})
        if at_once:
            return at_once
        known = (task_vars or {}).get("ansible_facts", {})
        is_wanted = told["state"] == "present"
        chooses_version = any("=" in name for name in told["name"])
        result: dict[str, Any] = self._execute_module(
            module_name="ansible.builtin.apt",
            module_args={
                "name": told["name"],
                "lock_timeout": _SECONDS,
                **({**_INSTALLED, "allow_downgrade": chooses_version} if is_wanted else _REMOVED),
            },
            task_vars=task_vars,
        )
        if result.get("failed") and self._task.check_mode and known.get("deb_source_pending"):
            result.update(failed=False, changed=True)
        if not result.get("failed"):
            result["deploy_manages"] = {"packages": [name.partition("=")[0] for name in told["name"]]}
        return result
