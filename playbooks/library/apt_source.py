#!/usr/bin/python
"""Ansible module: a package source of a vendor or of this host, put in place only when apt takes it."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import replace_file
from ansible.module_utils.openpgp_key import fingerprint
from ansible.module_utils.root_file import give_to_root, left
from ansible.module_utils.urls import open_url

DOCUMENTATION = r"""
module: apt_source
short_description: A package source of a vendor or of this host, put in place only when apt takes it
description:
  - Fetches the signing key and compares it with its fingerprint, then has apt read the source with this key
    in a place of its own. Only when that succeeds the source is written for good, so that a source that is
    wrong never breaks C(apt-get update) for everything else.
  - A directory of this host that root alone writes needs no key, because whoever could change it is root.
  - In check mode nothing is added, so apt cannot look up what the source has; then a fact says so.
options:
  name:
    description: The name of the files that are written, without their suffix.
    type: str
    required: true
  uri:
    description: Where the repository is.
    type: str
  directory:
    description: >-
      A directory on the host with packages and their index, in place of O(uri). It, what is above it and
      what is in it has to be root's, and nobody else may write there.
    type: path
  suite:
    description: The suite; a path that ends in a slash for a repository without suites.
    type: str
    default: /
  components:
    description: The components; none for a repository without suites.
    type: list
    elements: str
    default: []
  key_url:
    description: Where the signing key is.
    type: str
  key_fingerprint:
    description: The fingerprint of the key.
    type: str
  keyring:
    description: A keyring that is on the host already, in place of a key that is fetched.
    type: path
author: [the maintainers of this project]
"""

RETURN = r"""
ansible_facts:
  description: C(deb_source_pending), true; what apt does not find then may be in a source to come.
  type: dict
  returned: in check mode, where the source would be added
deploy_manages:
  description: C(files), the source and its key.
  type: dict
  returned: always
"""

_SOURCES, _KEYS = Path("/etc/apt/sources.list.d"), Path("/usr/share/keyrings")
_NO_KEY = Path(os.devnull)
_SECONDS = 30
_MEANINGS = (
    (
        r"NO_PUBKEY|missing key|Missing key",
        "it is not signed with this key, so nobody can say whose packages these are",
    ),
    (
        r"BADSIG|[Bb]ad signature|manipulated",
        "its signature is wrong: what it lists was changed after it was signed",
    ),
    (r"is not signed", "it is not signed"),
    (r"EXPKEYSIG|KEYEXPIRED|expired", "its signature or key has expired"),
    (
        r"Hash Sum mismatch|unexpected size|does not match",
        "a file has not the checksum that its signed list says",
    ),
)


def described(params: dict[str, Any], key: Path) -> str:
    """The source as apt reads it."""
    lines = ["# Made by deploy; changes made here are undone by the next run.", "Types: deb"]
    if params["directory"]:
        # copy and not file: what apt fetches is among its archives then, as from everywhere else.
        return "\n".join([*lines, f"URIs: copy:{params['directory']}", "Suites: ./", "Trusted: yes", ""])
    lines += [f"URIs: {params['uri']}", f"Suites: {params['suite']}"]
    if params["components"]:
        lines.append(f"Components: {' '.join(params['components'])}")
    return "\n".join([*lines, f"Signed-By: {key}", ""])


def meaning(output: str) -> str:
    """Why apt does not take a source, in words; apt's own where they are not known."""
    for pattern, words in _MEANINGS:
        if re.search(pattern, output):
            return words
    errors = [line[3:] for line in output.splitlines() if line.startswith(("E: ", "W: "))]
    return errors[0] if errors else output.strip()[-300:]


def not_roots(directory: Path) -> Path | None:
    """What of a directory, above it or in it somebody else than root could change; None where nothing is."""
    for path in (directory, *directory.parents, *sorted(directory.rglob("*"))):
        found = path.lstat()
        if found.st_uid != 0 or (found.st_mode & 0o022 and not stat.S_ISLNK(found.st_mode)):
            return path
    return None


class Source:
    """One package source on this machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._params = module.params
        name = self._params["name"]
        self.is_fetched = bool(self._params["key_url"])
        self.key_file = _KEYS / f"{name}.asc" if self.is_fetched else Path(self._params["keyring"] or _NO_KEY)
        self.file = (self._read_by_apt() if self._params["directory"] else _SOURCES) / f"{name}.sources"
        self.text = described(self._params, self.key_file)

    def _read_by_apt(self) -> Path:
        """Where apt looks for sources: not in its own place on a host that has all else from a bundle."""
        said = self._module.run_command(["apt-config", "shell", "PLACE", "Dir::Etc::sourceparts/d"])[1]
        found = re.search(r"PLACE='([^']+)'", str(said))
        return Path(found[1]) if found else _SOURCES

    def is_current(self) -> bool:
        """Whether source and key are there as they should be."""
        if not self.file.exists() or self.file.read_text(encoding="utf-8") != self.text:
            return False
        return not self.is_fetched or (self.key_file.exists() and self._is_right(self.key_file.read_bytes()))

    def give_to_root(self) -> bool:
        """Whether source or key belonged to somebody else, or not everybody could read them."""
        return bool([path for path in self.files if give_to_root(self._module, path)])

    @property
    def files(self) -> list[Path]:
        """What it leaves here."""
        return [self.file, self.key_file] if self.is_fetched else [self.file]

    def _is_right(self, key: bytes) -> bool:
        try:
            return fingerprint(key) == self._wanted
        except ValueError:
            return False

    @property
    def _where(self) -> str:
        return str(self._params["uri"] or self._params["directory"])

    @property
    def _wanted(self) -> str:
        return re.sub(r"\s", "", self._params["key_fingerprint"]).upper()

    def fetched_key(self) -> bytes:
        """The key, if it is the right one; of a keyring that is on the host what it holds."""
        if not self.is_fetched:
            try:
                return self.key_file.read_bytes()
            except OSError as problem:
                self._fail(f"the keyring {self.key_file} cannot be read: {problem.strerror}")
        url = self._params["key_url"]
        try:
            key = bytes(open_url(url, timeout=_SECONDS).read())
        except Exception as problem:  # noqa: BLE001 - whatever it is, the key is not there
            self._fail(f"the key {url} cannot be fetched: {problem}")
        try:
            found = fingerprint(key)
        except ValueError as problem:
            self._fail(f"{url}: {problem}")
        if found != self._wanted:
            self._fail(f"the key {url} has the fingerprint {found}, not {self._wanted}: it is another key")
        return key

    def judge(self, key: bytes) -> None:
        """Has apt read the source where nothing else is touched."""
        if self._params["directory"] and (path := not_roots(Path(self._params["directory"]))):
            self._fail(
                f"the package source {self._params['directory']} is not used: {path} is not root's alone"
            )
        with tempfile.TemporaryDirectory(prefix="deploy-apt-") as name:
            place = Path(name)
            place.chmod(0o755)  # apt fetches as a user of its own
            # What a key is, armoured or not, apt tells by the suffix.
            trial_key, trial = place / f"key{self.key_file.suffix}", place / "trial.sources"
            trial_key.write_bytes(key)
            trial.write_text(described(self._params, trial_key), encoding="utf-8")
            (place / "lists/partial").mkdir(parents=True)
            options = {
                "Dir::Etc::sourcelist": trial,
                "Dir::Etc::sourceparts": "-",
                "Dir::State::lists": place / "lists",
                "Dir::Cache::pkgcache": "",
                "Dir::Cache::srcpkgcache": "",
                "APT::Update::Error-Mode": "any",
                "APT::Sandbox::User": "root",
                "Acquire::Retries": 1,
                "Acquire::http::Timeout": _SECONDS,
                "Acquire::https::Timeout": _SECONDS,
            }
            words = [word for option, value in options.items() for word in ("-o", f"{option}={value}")]
            code, out, err = self._module.run_command(
                ["apt-get", "--quiet", *words, "update"], environ_update={"LC_ALL": "C"}
            )
            said = str(out) + str(err)
            if code != 0 or re.search(r"^W: .*(GPG error|not signed)", said, re.MULTILINE):
                self._fail(f"the package source {self._where} is not used: {meaning(said)}")

    def _fail(self, message: str) -> None:
        self._module.fail_json(msg=message)

    def write(self, key: bytes) -> None:
        """Puts the source in place, and reads its lists; without them it would count as known ever after.

        Where they do not come, all is as it was.
        """
        _KEYS.mkdir(parents=True, exist_ok=True)
        before = {path: path.read_bytes() for path in self.files if path.exists()}
        if self.is_fetched:
            replace_file(self.key_file, key, 0o644)
        replace_file(self.file, self.text.encode(), 0o644)
        code, _, err = self._module.run_command(
            [
                *(
                    "apt-get",
                    "--quiet",
                    "update",
                    "--error-on=any",
                    "-o",
                    f"Dir::Etc::sourcelist={self.file}",
                ),
                *("-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0"),
            ]
        )
        if code != 0:
            for path in self.files:
                if path in before:
                    replace_file(path, before[path], 0o644)
                else:
                    path.unlink()
            self._fail(f"apt-get update: {err.strip()[-500:]}")


def main() -> None:
    """Look; where something is missing or different fetch, judge, write."""
    arguments: dict[str, Any] = {
        "name": {"type": "str", "required": True},
        "uri": {"type": "str"},
        "directory": {"type": "path"},
        "suite": {"type": "str", "default": "/"},
        "components": {"type": "list", "elements": "str", "default": []},
        "key_url": {"type": "str", "no_log": False},
        "key_fingerprint": {"type": "str", "no_log": False},
        "keyring": {"type": "path", "no_log": False},
    }
    module = AnsibleModule(
        argument_spec=arguments,
        supports_check_mode=True,
        required_together=[("key_url", "key_fingerprint")],
        required_one_of=[("uri", "directory"), ("key_url", "keyring", "directory")],
        mutually_exclusive=[("uri", "directory"), ("key_url", "keyring", "directory")],
    )
    source = Source(module)
    changed = not source.is_current()
    if changed and not module.check_mode:
        key = source.fetched_key()
        source.judge(key)
        source.write(key)
    changed |= source.give_to_root()
    manages = {"files": left(source.files)}
    previewed = {"ansible_facts": {"deb_source_pending": True}} if changed and module.check_mode else {}
    module.exit_json(changed=changed, deploy_manages=manages, **previewed)


if __name__ == "__main__":
    main()
