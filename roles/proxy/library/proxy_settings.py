#!/usr/bin/python
"""Ansible module: apt and everybody's environment know the proxy.

blockinfile would not do: of two lines for a variable the last one counts, so the block goes behind lines
that somebody adds; and it takes away all that it wrote, in one round trip, before apt is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.proxy_texts import apt_text, environment_text, finder_text, has_password
from ansible.module_utils.root_file import keep, text_of

DOCUMENTATION = r"""
module: proxy_settings
short_description: Apt and everybody's environment know the proxy
description:
  - Writes a file for apt and a marked block in /etc/environment, or takes both away where no proxy is named.
    One with a password in its URL goes to apt alone, into a file that only root reads.
  - Where there is a cache of packages, a program beside tells apt whether it answers.
options:
  http:
    description: URL of the proxy for http.
    type: str
    default: ""
  https:
    description: URL of the proxy for https.
    type: str
    default: ""
  direct:
    description: Names, domains, addresses and networks that are reached without it.
    type: list
    elements: str
    default: []
  package_caches:
    description: URLs of caches of packages; apt asks the first that answers.
    type: list
    elements: str
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The files.
  type: dict
  returned: always
"""

_APT = Path("/etc/apt/apt.conf.d/05deploy-proxy")
_ENVIRONMENT = Path("/etc/environment")
_FINDER = Path("/usr/local/lib/deploy-package-cache")
_PRIVATE, _PUBLIC, _PROGRAM = 0o600, 0o644, 0o755


def main() -> None:
    """Compare both files with what they should say, and write those that differ."""
    arguments: dict[str, Any] = {
        "http": {"type": "str", "default": "", "no_log": True},
        "https": {"type": "str", "default": "", "no_log": True},
        "direct": {"type": "list", "elements": "str", "default": []},
        "package_caches": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    http, https, direct = (module.params[name] for name in ("http", "https", "direct"))
    secret = has_password(http) or has_password(https)
    finder = finder_text(module.params["package_caches"])
    wanted = {
        _FINDER: (finder, _PROGRAM),
        _APT: (
            apt_text(http, https, direct, str(_FINDER) if finder else ""),
            _PRIVATE if secret else _PUBLIC,
        ),
        _ENVIRONMENT: (environment_text(text_of(_ENVIRONMENT), http, https, direct), _PUBLIC),
    }
    changed = False
    for path, (text, mode) in wanted.items():
        if text:
            changed |= keep(module, path, text, mode)
        elif text_of(path) or (path != _ENVIRONMENT and path.exists()):
            changed = True
            if not module.check_mode:
                path.unlink()
    managed = [str(path) for path in (_FINDER, _APT) if wanted[path][0]]
    module.exit_json(changed=changed, deploy_manages={"files": managed})


if __name__ == "__main__":
    main()
