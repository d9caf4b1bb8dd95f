"""The exporter tells whether a service answers as it should, and not only whether its port is open."""

import pytest

from molecule.conftest import ASK, MACHINES, Converge, On


@pytest.mark.parametrize(
    ("module", "target", "expected"),
    [
        ("connect", "127.0.0.1:22", "1"),
        ("connect", "127.0.0.1:23", "0"),
        ("ssh", "127.0.0.1:22", "1"),
        ("ssh", "127.0.0.1:8080", "0"),
        ("http", "http://127.0.0.1:8080/", "1"),
        ("http", "http://127.0.0.1:8080/nothing", "0"),
        ("missing", "http://127.0.0.1:8080/nothing", "1"),
    ],
)
def test_what_it_finds(on: On, machine: str, module: str, target: str, expected: str) -> None:
    address = f"http://127.0.0.1:9115/probe?module={module}&target={target}"
    text = on(machine, *ASK, address).stdout
    assert f"\nprobe_success {expected}\n" in text


def test_a_way_to_ask_that_there_is_not_is_refused(on: On, converge: Converge) -> None:
    before = [on(machine, "sha256sum", "/etc/prometheus/blackbox.yml").stdout for machine in MACHINES]
    answer = converge(right_answers="valid_codes")
    assert "failed=0" not in answer.stdout
    assert [on(machine, "sha256sum", "/etc/prometheus/blackbox.yml").stdout for machine in MACHINES] == before


def test_it_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-enabled", "prometheus-blackbox-exporter").stdout == "enabled\n"
