import time

import pytest

from tests.unit.host_checks.checks import part, said
from tests.unit.roles.loading import load_module

names = part("names")

ENTRIES = [
    {"address": "10.0.0.1", "names": ["ctl1"]},
    {"address": "10.0.0.2", "names": ["node1"]},
    {"address": "fd00::3", "names": ["node2"]},
]
BEGIN = "# BEGIN cluster hosts (kept by deploy: changes inside this block are lost)\n"
BLOCK = f"{BEGIN}10.0.0.9 node1\n# END cluster hosts\n"


def check(text: str, *, own: str = "ctl1", removes: bool = True) -> list[dict[str, str]]:
    return list(names.check_hosts_file(text, ENTRIES, own, removes_loopback_name=removes))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1 localhost\n::1 localhost\n",
        "10.0.0.2 node1 node1.site\n",
        "# 10.0.0.9 node1\n",
        "10.0.0.9 node10 # not node1\n",
        "::ffff:10.0.0.2 node1\n",
        "fd00::2 node1\n",
        "FD00:0::3 node2\n",
        "nonsense node1\n",
        BLOCK,
    ],
)
def test_nothing_contradicts_the_inventory(text: str) -> None:
    assert check(text) == []


def test_a_line_with_another_address_is_an_error_and_is_named() -> None:
    (finding,) = check(f"127.0.0.1 localhost\n{BLOCK}10.0.0.9 node1.site node1\n")
    assert said([finding]) == [("error", "name-resolves-elsewhere")]
    assert finding["message"] == "node1 is 10.0.0.9 in /etc/hosts:5, and 10.0.0.2 in the inventory"


@pytest.mark.parametrize("line", ["10.0.0.9 NODE1\n", "::ffff:10.0.0.9 node1\n", f"{BLOCK}{BLOCK}"])
def test_as_the_c_library_reads_it(line: str) -> None:
    assert said(check(line)) == [("error", "name-resolves-elsewhere")]


def test_every_name_and_line_is_said() -> None:
    assert len(check("10.0.0.9 ctl1 node1\n10.0.0.8 node1\nfd00::4 node2\n")) == 4


def test_the_installers_line_is_what_hosts_file_removes() -> None:
    assert check("127.0.1.1 ctl1\n") == []
    assert said(check("127.0.1.1 ctl1\n", removes=False)) == [("warning", "own-name-is-loopback")]


def test_the_own_name_on_loopback_stays_there_and_is_a_warning() -> None:
    assert said(check("127.0.0.1 localhost ctl1\n")) == [("warning", "own-name-is-loopback")]


def test_another_hosts_name_on_loopback_is_an_error() -> None:
    assert said(check("127.0.1.1 ctl1 node1\n")) == [("error", "name-resolves-elsewhere")]


@pytest.mark.parametrize(
    "line",
    [
        "hosts: files dns",
        "hosts:          files mdns4_minimal [NOTFOUND=return] dns # as usual",
        "hosts: mymachines files myhostname dns",
        "passwd: sss files",
        "",
    ],
)
def test_the_file_is_asked_first(line: str) -> None:
    assert list(names.check_lookup_order(f"group: files\n{line}\n")) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [("hosts: dns files", "not first"), ("hosts: resolve [!UNAVAIL=return] dns", "not asked")],
)
def test_the_file_is_not_asked_first(line: str, word: str) -> None:
    (finding,) = names.check_lookup_order(f"{line}\n")
    assert said([finding]) == [("error", "hosts-file-not-first")]
    assert word in finding["message"]


def test_names_without_an_address_have_to_be_known_to_a_name_server() -> None:
    found = list(names.check_lookups(["c", "a", "b"], lambda name: name == "b"))
    assert [finding["message"].split()[0] for finding in found] == ["a", "c"]
    assert said(found) == [("error", "name-not-resolved")] * 2
    assert list(names.check_lookups([])) == []


def test_this_machine_resolves_localhost_and_no_invalid_name() -> None:
    found = list(names.check_lookups(["localhost", "no.such.host.invalid"]))
    assert [finding["message"].split()[0] for finding in found] == ["no.such.host.invalid"]


def test_a_late_answer_is_none() -> None:
    began = time.monotonic()

    def sleep(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    answers = part("at_once").ask([0.0, 60.0], sleep, 0.2)
    assert time.monotonic() - began < 50
    assert answers == {0.0: 0.0}


def test_many_questions_are_all_answered() -> None:
    assert part("at_once").ask(range(500), str, 30.0) == {number: str(number) for number in range(500)}


def test_hostname() -> None:
    assert list(names.check_hostname("node1", "node1.site.example")) == []
    assert list(names.check_hostname("", "whatever")) == []
    (finding,) = names.check_hostname("node1", "debian")
    assert said([finding]) == [("error", "hostname-differs")]
    assert "hostnamectl set-hostname node1" in finding["hint"]


hosts_block = load_module("playbooks/module_utils/hosts_block.py")
NSSWITCH = "hosts: files dns\n"


def lines(hosts: str, nsswitch: str = NSSWITCH) -> list[str]:
    return list(hosts_block.objections(hosts, nsswitch, "ctl1"))


def test_what_gives_the_blocks_names_other_addresses_is_named_by_its_line() -> None:
    assert lines(f"127.0.0.1 localhost ctl1\n{BLOCK}10.0.0.9 node1 login\n") == []
    other = "gives node1 the address 10.0.0.5: remove the name from this line"
    assert lines(f"10.0.0.5 node1\n{BLOCK}") == [f"/etc/hosts:1 {other}"]
    assert lines(f"{BLOCK}\n10.0.0.5 x node1\n") == [f"/etc/hosts:5 {other}"]
    assert len(lines(f"127.0.0.1 node1\n{BLOCK}")) == 1, "another host's name"
    assert lines("10.0.0.5 node1\n") == [], "nothing is promised without a block"


def test_an_order_of_lookups_without_the_file_is_named() -> None:
    assert len(lines(BLOCK, "hosts: dns files\n")) == 1
    assert len(lines(BLOCK, "hosts: resolve [!UNAVAIL=return] dns\n")) == 1
    assert lines(BLOCK, "") == []
    assert lines("", "hosts: dns\n") == []
