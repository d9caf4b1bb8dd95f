#!/usr/bin/python
"""Ansible module: apt and everybody's environment know the proxy."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.proxy_texts import apt_text, environment_text, has_password

DOCUMENTATION = r"""
module: proxy_settings
short_description: Apt and everybody's environment know the proxy
description:
  - Writes a file for apt and a marked block in /etc/environment, or takes both away where no proxy is named.
    One with a password in its URL goes to apt alone, into a file that only root reads.
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
_PRIVATE, _PUBLIC = 0o600, 0o644


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _write(module: AnsibleModule, path: Path, text: str, mode: int) -> None:
    if not text:
        path.unlink(missing_ok=True)
        return
    descriptor, sibling = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    module.atomic_move(sibling, str(path))
    path.chmod(mode)


def main() -> None:
    """Compare both files with what they should say, and write those that differ."""
    arguments: dict[str, Any] = {
        "http": {"type": "str", "default": "", "no_log": True},
        "https": {"type": "str", "default": "", "no_log": True},
        "direct": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    http, https, direct = (module.params[name] for name in ("http", "https", "direct"))
    secret = has_password(http) or has_password(https)
    wanted = {
        _APT: (apt_text(http, https, direct), _PRIVATE if secret else _PUBLIC),
        _ENVIRONMENT: (environment_text(_text(_ENVIRONMENT), http, https, direct), _PUBLIC),
    }
    differing = [
        path
        for path, (text, mode) in wanted.items()
        if text != _text(path) or (text and path.stat().st_mode & 0o777 != mode)
    ]
    if not module.check_mode:
        for path in differing:
            _write(module, path, *wanted[path])
    module.exit_json(
        changed=bool(differing), deploy_manages={"files": [str(_APT)] if wanted[_APT][0] else []}
    )


if __name__ == "__main__":
    main()
