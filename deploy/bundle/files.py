"""Files at addresses, fetched into a directory and compared with their checksums."""

import hashlib
import http.client
import shutil
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from deploy.bundle.contents import Download
from deploy.errors import DeployError, ExitCode, error

_SECONDS = 60


def place_of(download: Download, directory: Path) -> Path:
    """Where a mirror has it: HOST/PATH, as ``bootstrap_mirror`` looks for it. Raises DeployError."""
    parts = urlsplit(download.url)
    place = directory / parts.netloc / parts.path.lstrip("/")
    if ".." in place.parts or "@" in parts.netloc:
        raise _failed(download, "the address has .. or a password in it")
    return place


def fetch(download: Download, directory: Path) -> bool:
    """Fetches a file unless it is there already; returns whether it was fetched. Raises DeployError."""
    place = place_of(download, directory)
    if place.is_file() and sha256(place) == download.sha256:
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f"{place.name}.part")
    try:
        # Only http, https and ftp: contents_of leaves all others out.
        with urllib.request.urlopen(download.url, timeout=_SECONDS) as answer, partial.open("wb") as file:  # noqa: S310
            shutil.copyfileobj(answer, file)
        if (found := sha256(partial)) != download.sha256:
            raise _failed(download, f"its checksum is {found}, and has to be {download.sha256}")
        partial.replace(place)
    except (http.client.HTTPException, OSError, ValueError) as problem:
        raise _failed(download, str(getattr(problem, "reason", problem))) from None
    finally:
        partial.unlink(missing_ok=True)
    return True


def _failed(download: Download, reason: str) -> DeployError:
    return error(
        "bundle-download-failed",
        f"{download.url}: {reason}",
        hint="correct the address or the checksum in group_vars, then run deploy bundle again",
        exit_code=ExitCode.FAILED,
    )


def sha256(path: Path) -> str:
    """A file's checksum, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
