"""What the roles about access must know of the whole site: who connects, who may reach whom."""

from typing import Any

from deploy.site.inventory import Host

Variables = dict[str, Any]

_READERS = ("job_ssh_connecting_user", "login_limits_connecting_user")


def access_of(host: Host) -> Variables:
    """Variables of one host: the account that Ansible connects with, which no role may shut out."""
    user = host.variables.get("ansible_user", host.variables.get("ansible_ssh_user"))
    # Without one, Ansible takes the name of whoever types the command; the roles look for it on the host.
    return dict.fromkeys(_READERS, user) if isinstance(user, str) and user and "{{" not in user else {}
