"""Kernels without IPv6 (ipv6.disable=1), on which a daemon that is told to listen by it ends."""

from tests.contract.content import ROOT


def test_nothing_listens_by_ipv6_where_the_kernel_has_none() -> None:
    found = []
    for path in ROOT.glob("roles/*/templates/**/*.j2"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for before, line in zip(["", *lines], lines, strict=False):
            if "listen [::]" in line and not before.startswith("{% if"):
                found.append(f"{path.relative_to(ROOT)}: {line.strip()}")
    assert found == []
