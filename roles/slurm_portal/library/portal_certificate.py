#!/usr/bin/python
"""Ansible module: the key and certificate of the portal."""

from __future__ import annotations

import grp
import os
import shutil
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import replace_file
from ansible.module_utils.root_file import left

DOCUMENTATION = r"""
module: portal_certificate
short_description: The key and certificate of the portal
description:
  - Takes the site's, from files on the host, or makes an authority, and a certificate for the names, which is
    made anew sixty days before it ends.
options:
  directory:
    description: Where they are put, as tls.crt and tls.key.
    type: path
    required: true
  group:
    description: The group that may read the key.
    type: str
    required: true
  names:
    description: The names and addresses of the portal.
    type: list
    elements: str
    required: true
  certificate:
    description: The site's certificate; empty for one that is made.
    type: path
    default: ""
  key:
    description: Its key.
    type: path
    default: ""
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: C(files), the certificate.
  type: dict
  returned: always
"""

_AUTHORITY_DAYS, _DAYS, _RENEWED_BEFORE = "3650", "730", str(60 * 24 * 3600)


class Certificate:
    """Both files, and what they should be."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        directory = Path(module.params["directory"])
        self.certificate, self.key = directory / "tls.crt", directory / "tls.key"
        self.authority, self._authority_key = directory / "authority.crt", directory / "authority.key"

    @property
    def names(self) -> str:
        """As a certificate has them."""
        names = dict.fromkeys(filter(None, self._module.params["names"]))
        return ",".join(f"{'IP' if _is_address(name) else 'DNS'}:{name}" for name in names)

    def of_site(self) -> tuple[bytes, bytes]:
        """What the site has."""
        try:
            found = [Path(self._module.params[name]).read_bytes() for name in ("certificate", "key")]
        except OSError as problem:
            self._module.fail_json(
                msg=f"{problem.filename}: {problem.strerror}. slurm_portal_certificate and "
                "slurm_portal_certificate_key have to name files on this host"
            )
            raise
        certified = self._run(["x509", "-in", self._module.params["certificate"], "-noout", "-pubkey"])
        if certified != self._run(["pkey", "-in", self._module.params["key"], "-passin", "pass:", "-pubout"]):
            self._module.fail_json(
                msg="slurm_portal_certificate_key is not the key of slurm_portal_certificate"
            )
        return found[0], found[1]

    def is_fit(self) -> bool:
        """Whether the certificate that was made is for these names, and for long enough."""
        if not all(
            path.exists() for path in (self.certificate, self.key, self.authority, self._authority_key)
        ):
            return False
        code, _, _ = self._module.run_command(
            ["openssl", "x509", "-in", str(self.certificate), "-noout", "-checkend", _RENEWED_BEFORE]
        )
        told = self._run(["x509", "-in", str(self.certificate), "-noout", "-ext", "subjectAltName"])
        said = {word.strip().replace("IP Address:", "IP:") for word in told.splitlines()[-1].split(",")}
        return code == 0 and said == set(self.names.split(","))

    def make(self) -> tuple[bytes, bytes]:
        """A new one, of the authority, which is made where there is none."""
        with tempfile.TemporaryDirectory(prefix="portal-") as place:
            if not (self.authority.exists() and self._authority_key.exists()):
                self._authority(Path(place))
            request, key, made = (f"{place}/{name}" for name in ("request", "key", "certificate"))
            self._run(["req", "-new", *_new_key(key), "-subj", "/CN=slurm-portal", "-out", request])
            extensions = Path(place) / "extensions"
            extensions.write_text(
                f"subjectAltName={self.names}\nbasicConstraints=critical,CA:false\n"
                "keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n"
            )
            self._run(
                [
                    *(
                        "x509",
                        "-req",
                        "-in",
                        request,
                        "-days",
                        _DAYS,
                        "-out",
                        made,
                        "-extfile",
                        str(extensions),
                    ),
                    *("-CA", str(self.authority), "-CAkey", str(self._authority_key)),
                    *("-CAserial", f"{place}/serial", "-CAcreateserial"),
                ]
            )
            return Path(made).read_bytes(), Path(key).read_bytes()

    def _authority(self, place: Path) -> None:
        key, made = place / "authority.key", place / "authority.crt"
        self._run(
            [
                *("req", "-x509", *_new_key(str(key)), "-days", _AUTHORITY_DAYS, "-out", str(made)),
                *("-subj", "/CN=Portal of this cluster", "-addext", "keyUsage=critical,keyCertSign"),
            ]
        )
        replace_file(self._authority_key, key.read_bytes(), 0o600, (0, 0))
        replace_file(self.authority, made.read_bytes(), 0o644, (0, 0))

    def _run(self, arguments: list[str]) -> str:
        code, out, said = self._module.run_command(["openssl", *arguments], umask=0o077)
        if code != 0:
            self._module.fail_json(msg=f"openssl {arguments[0]}: {said.strip()[-300:]}")
        return str(out)


def _new_key(path: str) -> list[str]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path]


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()


def _has(path: Path, text: bytes, mode: int, group: int) -> bool:
    if not path.exists() or path.read_bytes() != text:
        return False
    found = path.stat()
    return (found.st_mode & 0o7777, found.st_uid, found.st_gid) == (mode, 0, group)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "group": {"type": "str", "required": True},
            "names": {"type": "list", "elements": "str", "required": True},
            "certificate": {"type": "path", "default": ""},
            "key": {"type": "path", "default": "", "no_log": False},
        },
        supports_check_mode=True,
    )
    os.umask(0o077)
    kept, group = Certificate(module), grp.getgrnam(module.params["group"]).gr_gid
    if module.check_mode and not (kept.certificate.parent.is_dir() and shutil.which("openssl")):
        module.exit_json(changed=True, deploy_manages={})
    if module.params["certificate"]:
        certificate, key = kept.of_site()
    elif kept.is_fit():
        certificate, key = kept.certificate.read_bytes(), kept.key.read_bytes()
    elif module.check_mode:
        module.exit_json(changed=True, deploy_manages={"files": left([kept.certificate])})
        return
    else:
        certificate, key = kept.make()
    wanted = ((kept.certificate, certificate, 0o644, 0), (kept.key, key, 0o640, group))
    differing = [each for each in wanted if not _has(*each)]
    for path, text, mode, number in differing if not module.check_mode else ():
        replace_file(path, text, mode, (0, number))
    module.exit_json(changed=bool(differing), deploy_manages={"files": left([kept.certificate])})


if __name__ == "__main__":
    main()
