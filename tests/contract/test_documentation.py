"""The documentation as a site: every link leads somewhere, and nothing is loaded from elsewhere."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jinja2 import Environment
from jinja2.meta import find_undeclared_variables

from deploy.plan.declarations import listening, listening_names
from deploy.site.inventory import CONTAINER, MEMBERS, RDMA, read_site
from deploy.site.schema import OWN_PREFIX, options
from deploy.site.versions import catalogue
from deploy.site.wording import is_computed
from tests.contract.content import ROOT, role_directories, strings
from tests.tracked import copy_tracked, tracked
from tests.unit.site.sites import write_site

_MKDOCS = Path(sys.executable).parent / "mkdocs"
# What a browser fetches when it shows a page, as opposed to what a reader may follow.
_LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+""")
_STYLED = re.compile(
    r"""<link\b[^>]*\brel=["']?(?:stylesheet|preconnect|icon)\b[^>]*\bhref=["']?(?:https?:)?//"""
)


def _project(place: Path) -> Path:
    """A copy of what the site is made from."""
    for name in ("docs", "roles"):
        copy_tracked(name, place / name)
    for name in ("mkdocs.yml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"):
        (place / name).write_bytes((ROOT / name).read_bytes())
    return place


def _build(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([_MKDOCS, "build"], cwd=project, capture_output=True, text=True, check=False)


def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    project = _project(tmp_path)
    answer = _build(project)
    assert answer.returncode == 0, answer.stderr
    pages = list((project / "build/docs").rglob("*.html"))
    assert len(pages) > 50
    assert _LOADED.search('<script src="https://cdn.example/x.js">')
    assert _STYLED.search('<link rel="stylesheet" href="https://fonts.example/css">')
    found = [
        (page.name, match[0])
        for page in pages
        for pattern in (_LOADED, _STYLED)
        for match in pattern.finditer(page.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("page", "link", "said"),
    [
        ("docs/lab.md", "nowhere.md", "nowhere.md"),
        ("docs/lab.md", "rehearse.md#nowhere", "#nowhere"),
        ("docs/lab.md", "../roles/nowhere/README.md", "roles/nowhere"),
        ("roles/slurmd/README.md", "../../docs/admin.md#nowhere", "#nowhere"),
        # It is in the repository and not in the site.
        ("docs/lab.md", "errors.yml", "errors.yml"),
    ],
)
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, page: str, link: str, said: str) -> None:
    project = _project(tmp_path)
    with (project / page).open("a", encoding="utf-8") as text:
        text.write(f"\nSee [there]({link}).\n")
    answer = _build(project)
    assert answer.returncode != 0
    assert said in answer.stderr


def test_roles_are_pages_that_others_link_to(tmp_path: Path) -> None:
    project = _project(tmp_path)
    assert _build(project).returncode == 0
    page = (project / "build/docs/storage.html").read_text(encoding="utf-8")
    assert 'href="roles/network_mounts/index.html"' in page
    settings = yaml.safe_load((project / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["strict"] is True


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_every_page_is_found_from_the_first_one(page: str) -> None:
    first = ROOT / page
    linked = {(first.parent / link).resolve() for link in _LINK.findall(first.read_text(encoding="utf-8"))}
    pages = {path for path in tracked() if path.parent == ROOT / "docs" and path.suffix == ".md"}
    assert pages - linked - {ROOT / "docs/index.md"} == set()


def test_the_page_on_inventories_has_every_group() -> None:
    page = (ROOT / "docs/admin.md").read_text(encoding="utf-8")
    groups = page.partition("\n## Inventory\n")[2].partition("\n## ")[0]
    assert {RDMA, CONTAINER, *MEMBERS} - {*re.findall(r"`([a-z-]+)`", groups)} == set()


def test_the_page_on_monitoring_has_the_ports_of_what_is_watched() -> None:
    """By it somebody writes rules for a firewall of the site's."""
    page = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    rows = page.partition("| Where | What | Port |")[2].partition("\n\n")[0]
    watched = [
        name for role in role_directories() for name in listening_names(role.name) if _is_watched(name)
    ]
    ports = {str(options()[f"{name}_port"].spec["default"]) for name in watched}
    assert len(ports) > 5
    assert ports - {*re.findall(r"\b\d+\b", rows)} == set()


def _is_watched(name: str) -> bool:
    found = listening(name)
    return found is not None and found.is_watched


_LINK = re.compile(r"\]\(([^)#\s]+)")


def test_links_lead_somewhere_in_the_repository_too() -> None:
    documents = [path for path in tracked() if path.suffix == ".md"]
    assert ROOT / "README.md" in documents
    links = [
        (document, link)
        for document in documents
        for link in _LINK.findall(document.read_text(encoding="utf-8"))
        if "://" not in link
    ]
    assert len(links) > 30
    assert [f"{document}: {link}" for document, link in links if not (document.parent / link).exists()] == []


_EXAMPLE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Ansible looks for such a file below the playbooks, and not beside the inventory.
_RELATIVE = re.compile(
    r"""\b(?:lookup|query)\(\s*['"](?:ansible\.builtin\.)?(?:file|fileglob|template)['"]\s*,\s*['"](?!/)"""
)
_OF_ANSIBLE = frozenset({"inventory_dir", "lookup", "query"})


class _Loader(yaml.SafeLoader):
    """Reads what Ansible does: ``!unsafe`` text is no template."""


_Loader.add_constructor("!unsafe", lambda _loader, _node: "")


def faults_of_examples(text: str) -> list[str]:
    """What a site that copies the examples of a document would find refused, or a file that is not found."""
    blocks = _EXAMPLE.findall(text)
    found = [match[0] for _, block in blocks for match in _RELATIVE.finditer(block)]
    for block in (block for language, block in blocks if language == "yaml"):
        said = yaml.load(block, _Loader)  # noqa: S506 - it is a safe one
        # Others are validation.yml, user-commands.yml, playbooks.
        if isinstance(said, dict) and said.keys() & options().keys():
            found += _refused(said)
            found += [name for text in strings(said) for name in _unknown_in(text)]
            found += _without_files(said)
    return found


def _refused(said: dict[str, object]) -> Iterator[str]:
    for name in said:
        option = options().get(name)
        if option is None and not name.startswith(OWN_PREFIX):
            yield f"{name}: unknown"
        elif option is not None and is_computed(option.spec):
            yield f"{name}: computed"


def _without_files(said: dict[str, object]) -> Iterator[str]:
    """Versions of which nothing says where they come from."""
    for name in said:
        files = f"{name.removesuffix('_version')}_files"
        if name.endswith("_version") and files in options() and files not in {*said, *catalogue()}:
            yield f"{name}: without {files}"


def _unknown_in(template: str) -> Iterator[str]:
    """Variables in a template that a site can have no value of."""
    environment = Environment(autoescape=True)
    for name in sorted(find_undeclared_variables(environment.parse(template)) - _OF_ANSIBLE):
        if not name.startswith((OWN_PREFIX, "ansible_")) and name not in options():
            yield f"{name}: unknown"


@pytest.mark.parametrize(
    ("block", "faults"),
    [
        ("slurmd_gpu_mps: true\nsite_word: a\n", []),
        ("slurmd_gpu_mpss: true\nslurmd_gpu_mps: true\n", ["slurmd_gpu_mpss: unknown"]),
        ("grafana_prometheus_url: https://a\n", ["grafana_prometheus_url: computed"]),
        ("grafana_settings: {a: ['{{ key }}', '{{ site_key }}']}\n", ["key: unknown"]),
        ('conda_version: "2.3.2"\n', ["conda_version: without conda_files"]),
        ("programs: {nccl: '{{ key }}'}\n", []),
        ("sssd_ca: \"{{ lookup('file', 'files/ca.crt') }}\"\n", ["lookup('file', '"]),
        ("sssd_ca: \"{{ lookup('file', inventory_dir ~ '/files/ca.crt') }}\"\n", []),
        ("sssd_ca: \"{{ lookup('ansible.builtin.file', '/srv/ca.crt') }}\"\n", []),
    ],
)
def test_examples_that_would_be_refused_are_found(block: str, faults: list[str]) -> None:
    assert faults_of_examples(f"An example:\n\n```yaml\n{block}```\n") == faults


@pytest.mark.parametrize(
    "page",
    [
        "backup.md#restore",
        "controllers.md#a-new-machine-in-the-place-of-a-lost-one",
        "day2.md#everyday-changes",
        "day2.md#new-machines-under-old-names",
    ],
)
def test_who_gets_a_new_machine_is_led_to_what_lets_the_key_in(page: str) -> None:
    """What an installer leaves takes no key and has no sudo; an image may do."""
    name, _, anchor = page.partition("#")
    parts = re.split(r"^##+ (.*)$", (ROOT / "docs" / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [
        text for title, text in zip(parts[1::2], parts[2::2], strict=True) if _anchor(title) == anchor
    ]
    assert "install.md#a-machine-that-was-installed-anew" in section


def _anchor(title: str) -> str:
    return re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))


_BESIDE = re.compile(r"inventory_dir ~ '/([^']+)'")


def test_where_the_inventory_is_a_directory_the_files_of_examples_are_no_part_of_it(tmp_path: Path) -> None:
    """Ansible reads all else that lies there: a program as hosts, or it refuses the site."""
    documents = [
        path for path in tracked() if path.suffix in {".md", ".yml"} and ROOT / "tests" not in path.parents
    ]
    named = {name for path in documents for name in _BESIDE.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 5
    inventory = write_site(tmp_path).parent
    hosts = read_site(inventory).hosts.keys()
    for name in named:
        (inventory / name).parent.mkdir(exist_ok=True)
        (inventory / name).write_text("stray\n")
    assert read_site(inventory).hosts.keys() == hosts


def test_a_site_can_copy_the_examples() -> None:
    documents = [path for path in tracked() if path.suffix == ".md"]
    examples = [text for path in documents for text in _EXAMPLE.findall(path.read_text(encoding="utf-8"))]
    assert len([block for language, block in examples if language == "yaml"]) > 40
    faults = {str(path.relative_to(ROOT)): faults_of_examples(path.read_text("utf-8")) for path in documents}
    assert {path: found for path, found in faults.items() if found} == {}
