"""How large a host's log becomes before it is put by: rsyslog keeps the number in an int of C."""

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.contract.content import ROOT, read_yaml

_ROLE = ROOT / "roles/log_server"
_LARGEST = 2**31 - 1


def part_bytes(host_mb: int) -> int:
    parts = ("__log_server_part_mb", "__log_server_part_bytes")
    role = read_yaml(_ROLE / "vars/main.yml")
    templates = {name: trust_as_template(role[name]) for name in parts}
    templar = Templar(loader=DataLoader(), variables={**templates, "log_server_host_mb": host_mb})
    return int(templar.template(templates["__log_server_part_bytes"]))


@pytest.mark.parametrize("host_mb", [1, 8, 4096, 8191, 8192, 12288, 16384, 1 << 20])
def test_rsyslog_understands_the_size_of_a_part(host_mb: int) -> None:
    assert 0 < part_bytes(host_mb) <= _LARGEST


def test_it_is_a_quarter_of_what_a_host_has() -> None:
    assert [part_bytes(mb) >> 20 for mb in (1, 8, 4096, 8188, 1 << 20)] == [1, 2, 1024, 2047, 2047]


@pytest.mark.parametrize(
    ("release", "rotates"),
    [(("Debian", "12"), True), (("Debian", "13"), True), (("Ubuntu", "22"), False), (("Ubuntu", "24"), True)],
)
def test_rsyslog_goes_by_it_where_it_knows_the_word(release: tuple[str, str], *, rotates: bool) -> None:
    """Before 8.2302 it does not, and refuses the file."""
    said = read_yaml(_ROLE / "defaults/main.yml") | read_yaml(_ROLE / "vars/main.yml")
    facts = dict(zip(("distribution", "distribution_major_version"), release, strict=True))
    variables = {
        name: trust_as_template(text) if isinstance(text, str) else text for name, text in said.items()
    }
    templar = Templar(loader=DataLoader(), variables={**variables, "ansible_facts": facts})
    settings = (_ROLE / "templates/etc/rsyslog.d/10-deploy-server.conf.j2").read_text(encoding="utf-8")
    made = str(templar.template(trust_as_template(settings)))
    assert ('rotation.sizeLimit="1073741824"' in made) == rotates
    assert ("rotation." in made) == rotates
    assert "dynaFileCacheSize" in made
