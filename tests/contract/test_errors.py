"""Every reference of a message is explained, and nothing else is."""

from typing import Any

import yaml

from tests.contract.content import ROOT
from tests.contract.references import used
from tests.unit.site.test_bad_sites import SITES

_NOT_A_SITE = {
    "ansible-does-not-fit",  # the installed Ansible
    "commands-invalid",  # a file beside the site
    "commands-not-found",
    "inventory-not-found",  # there is no site
    "inventory-passed-over",  # an inventory that is a directory
    "invalid-extra-variables",
    "limit-matches-nothing",
    "site-exists",
    "site-not-made",
    "vault-password-wrong",
}
"""References of deploy/site that are about what was typed; their own tests make them happen."""


def explained() -> dict[str, dict[str, str]]:
    chapters: list[dict[str, Any]] = yaml.safe_load((ROOT / "docs/errors.yml").read_text(encoding="utf-8"))
    entries = [entry for chapter in chapters for entry in chapter["references"].items()]
    assert len({reference for reference, _ in entries}) == len(entries)
    return dict(entries)


def test_every_reference_is_explained() -> None:
    missing = {reference: place for reference, place in used().items() if reference not in explained()}
    assert missing == {}, "write what they mean into docs/errors.yml, then: python docs/generate.py"


def test_no_reference_is_explained_that_nothing_uses() -> None:
    assert sorted(explained().keys() - used().keys()) == []


def test_an_explanation_says_what_it_means_and_what_to_do() -> None:
    for reference, entry in explained().items():
        assert set(entry) == {"means", "remedy"}, reference
        assert all(text.strip().endswith(".") for text in entry.values()), reference


def test_every_reference_has_an_anchor() -> None:
    headings = (ROOT / "docs/errors.md").read_text(encoding="utf-8").splitlines()
    assert [reference for reference in explained() if f"### {reference}" not in headings] == []


def test_every_reference_of_a_site_has_a_bad_site() -> None:
    found = {line.rpartition("[")[2].rstrip("]") for site in SITES for line in site.expected}
    assert sorted(used("deploy/site").keys() - found - _NOT_A_SITE) == []
    assert found <= used("deploy/site").keys()
