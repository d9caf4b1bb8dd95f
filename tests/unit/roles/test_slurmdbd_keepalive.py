"""How soon a slurmdbd that stands by learns that the first one's host has lost its power."""

from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.contract.content import ROOT, read_yaml

_OWN = "keepaliveinterval=2,keepaliveprobes=3,keepalivetime=3"


def written(backup: str, **said: object) -> dict[str, Any]:
    """What is written into slurmdbd.conf besides what has a variable of its own."""
    own = {"__slurmdbd_keepalive", "__slurmdbd_communication", "__slurmdbd_parameters"}
    role: dict[str, Any] = read_yaml(ROOT / "roles/slurmdbd/vars/main.yml")
    templates = {name: trust_as_template(text) for name, text in role.items() if name in own}
    variables = {**templates, "slurmdbd_backup_host": backup, "slurmdbd_parameters": said}
    found: dict[str, Any] = Templar(loader=DataLoader(), variables=variables).template(
        templates["__slurmdbd_parameters"]
    )
    return found


def test_two_ask_each_other_often() -> None:
    assert written("ctl2") == {"CommunicationParameters": _OWN}


def test_one_alone_is_as_slurm_has_it() -> None:
    assert written("", MaxQueryTimeRange="60-00:00:00") == {"MaxQueryTimeRange": "60-00:00:00"}


def test_what_a_site_says_comes_first_and_so_is_what_slurm_takes() -> None:
    found = written("ctl2", CommunicationParameters="NoInAddrAny,keepalivetime=60")
    assert found == {"CommunicationParameters": f"NoInAddrAny,keepalivetime=60,{_OWN}"}
