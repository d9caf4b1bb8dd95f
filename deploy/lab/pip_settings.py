"""What this machine's own pip says of certificates and packages: machines of a rehearsal use the same."""

import configparser
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from deploy.lab.tarball import Entry

SETTINGS = Path("/etc/pip.conf")
_CERTIFICATES = "/usr/local/share/certificates-of-pip.crt"
_URLS = ("index-url", "extra-index-url")
_KEPT = ("proxy", "trusted-host", "timeout")


def pip_entries(settings: Path = SETTINGS) -> list[Entry]:
    """The files with which pip on another machine finds packages as pip here does; none where it needs none.

    A source that is a directory of this machine, or whose address holds a password, is left out.
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(settings, encoding="utf-8")
        section: Mapping[str, str] = dict(parser["global"])
        certificates = Path(section["cert"]).read_text(encoding="utf-8") if "cert" in section else ""
    except (OSError, KeyError, configparser.Error, UnicodeError):
        return []
    kept = {key: section[key] for key in _KEPT if key in section and _is_open(section[key])}
    for key in _URLS:
        urls = [url for url in section.get(key, "").split() if _is_open(url)]
        kept |= {key: " ".join(urls)} if urls else {}
    if certificates:
        kept["cert"] = _CERTIFICATES
    if not kept:
        return []
    lines = "".join(f"{key} = {value}\n" for key, value in kept.items())
    entries = [Entry("/etc/pip.conf", f"[global]\n{lines}")]
    return [*entries, Entry(_CERTIFICATES, certificates)] if certificates else entries


def _is_open(url: str) -> bool:
    return not url.startswith("file:") and "@" not in urlsplit(url).netloc
