#!/usr/bin/python
"""Ansible module: a host that others know by a certificate of its key, and that knows them by theirs."""

from __future__ import annotations

import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, text_of

DOCUMENTATION = r"""
module: ssh_host_identity
short_description: A host that others know by a certificate of its key
description:
  - Keeps the line of the authority in the list of known hosts, the certificate beside the host's key, and the
    settings by which ssh has the host vouch for its users. The action plugin of this name signs.
options:
  authority:
    description: The public key of who vouches for the hosts of the cluster.
    type: str
    required: true
  certificate:
    description: What takes the certificate's place; where it is empty, the one that is there stays.
    type: str
    default: ""
  state:
    description: Whether the host takes part; absent takes away what it had from here.
    type: str
    choices: [present, absent]
    default: present
author: [the maintainers of this project]
"""

RETURN = r"""
key:
  description: The host's public key.
  type: str
  returned: when the host takes part
certificate:
  description: The certificate that was there.
  type: str
  returned: when the host takes part
refused:
  description: Why the host cannot take part.
  type: str
  returned: where it cannot
"""

_SSH = Path("/etc/ssh")
KEY = _SSH / "ssh_host_ed25519_key.pub"
CERTIFICATE = _SSH / "ssh_host_ed25519_key-cert.pub"
_KNOWN = _SSH / "ssh_known_hosts"
_CLIENT = _SSH / "ssh_config.d/50-deploy.conf"
_INCLUDE = re.compile(r"^\s*Include\s+(/etc/ssh/)?ssh_config\.d/\*\.conf", re.MULTILINE | re.IGNORECASE)
# The key's comment says whose line it is.
_OURS = re.compile(r"@cert-authority \S+ \S+ \S+ deploy")
_SETTINGS = """\
# Made by deploy; changes made here are undone by the next run.
HostbasedAuthentication yes
EnableSSHKeysign yes
"""


def known_hosts(text: str, authority: str) -> str:
    """The list of known hosts with the line of the authority, or without where that is empty."""
    lines = [line for line in text.splitlines() if not _OURS.fullmatch(line)]
    if authority:
        lines.append(f"@cert-authority * {authority} deploy")
    return "".join(f"{line}\n" for line in lines)


def take_away(module: AnsibleModule) -> bool:
    """Ends what was there; whether there was something."""
    there = [path for path in (CERTIFICATE, _CLIENT) if path.exists()]
    known = text_of(_KNOWN)
    if not module.check_mode:
        for path in there:
            path.unlink()
    rest = known_hosts(known, "")
    return (rest != known and keep(module, _KNOWN, rest)) or bool(there)


def main() -> None:
    """Compare and write, each only where it is needed."""
    module = AnsibleModule(
        argument_spec={
            "authority": {"type": "str", "required": True},
            "certificate": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    if module.params["state"] == "absent":
        changed = take_away(module)
        module.exit_json(changed=changed)
    if not KEY.exists():
        # Nobody sees how this ends where a secret is hidden: a task after it says so.
        module.exit_json(
            changed=False,
            refused=f"there is no {KEY}; ssh-keygen -A makes it, then: systemctl restart ssh. Or set "
            "ssh_server_host_based to false for this host",
        )
    if not _INCLUDE.search(text_of(_SSH / "ssh_config")):
        module.warn(
            f"{_SSH}/ssh_config does not include {_CLIENT.parent}/*.conf, so ssh asks no host to vouch"
        )
    before = text_of(CERTIFICATE)
    changed = keep(module, _KNOWN, known_hosts(text_of(_KNOWN), module.params["authority"]))
    changed |= keep(module, _CLIENT, _SETTINGS)
    if before or module.params["certificate"]:
        changed |= keep(module, CERTIFICATE, module.params["certificate"] or before)
    module.exit_json(
        changed=changed,
        key=text_of(KEY).strip(),
        certificate=before.strip(),
    )


if __name__ == "__main__":
    main()
