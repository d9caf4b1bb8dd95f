"""What mkdocs does beyond mkdocs.yml: pages from outside docs/, and links that work on GitHub, too.

A link in a file is relative to that file's place in the repository, as GitHub needs it. In the site, pages
from docs/ lie at the root and others at their path in the repository; links are adjusted to that.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).resolve().parents[1]
_BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the roles below Reference."""
    (reference,) = (part["Reference"] for part in config.nav or [] if "Reference" in part)
    reference.append({"Roles": [{role.name: f"roles/{role.name}/README.md"} for role in _roles()]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is outside docs/ and has links to it."""
    for path in (*_BESIDE, *(f"roles/{role.name}/README.md" for role in _roles())):
        files.append(File.generated(config, path, abs_src_path=str(_ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links as they are within the site.

    Raises PluginError for a link to what is not in the site.
    """
    parts = _CODE.split(markdown)
    return "".join(
        part if number % 2 else _LINK.sub(lambda link: _within_site(link[1], page.file.src_uri, files), part)
        for number, part in enumerate(parts)
    )


def _within_site(link: str, page: str, files: Files) -> str:
    source = page if _is_beside(page) else f"docs/{page}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if (_ROOT / target).is_dir():
        target += "/README.md"
    place = target.removeprefix("docs/")
    found = files.get_file_from_path(place)
    if found is None or found.inclusion.is_excluded():
        message = f"{source}: the link {link} leads nowhere; the site has no {target}"
        raise PluginError(message)
    return posixpath.relpath(place, posixpath.dirname(page) or ".")


def _is_beside(page: str) -> bool:
    return page in _BESIDE or page.startswith("roles/")


def _roles() -> Iterator[Path]:
    yield from sorted(path.parent for path in (_ROOT / "roles").glob("*/README.md"))
