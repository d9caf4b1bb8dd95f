"""Reservations are as declared; what is over is not made, what is declared no more goes, others' stay."""

import re
from typing import Any

from molecule.conftest import Converge, On

MAINTENANCE = {
    "name": "maintenance",
    "start": "2050-12-24T08:00",
    "duration": "4:00:00",
    "flags": ["MAINT", "IGNORE_JOBS"],
}


def shown(on: On, machine: str) -> dict[str, dict[str, str]]:
    lines = on(machine, "scontrol", "--oneliner", "show", "reservation").stdout.splitlines()
    found = [dict(re.findall(r"([A-Za-z]+)=(\S*)", line)) for line in lines]
    return {each["ReservationName"]: each for each in found if "ReservationName" in each}


def changed(converge: Converge, machine: str, *options: str, reservations: list[dict[str, Any]]) -> bool:
    """Whether the reservations change when the playbook is played again with these."""
    played = converge(*options, only=machine, tags="configure", reservations=reservations)
    assert played.returncode == 0, played.stdout
    (recap,) = (line for line in played.stdout.splitlines() if " : ok=" in line)
    return "changed=0 " not in recap


def test_they_are_as_declared(on: On, machine: str) -> None:
    found = shown(on, machine)
    assert found.keys() == {"maintenance", "course", "some", "whole"}
    assert found["maintenance"]["StartTime"] == "2050-12-24T08:00:00"
    assert found["maintenance"]["EndTime"] == "2050-12-24T12:00:00"
    assert {"MAINT", "ALL_NODES"} <= {*found["maintenance"]["Flags"].split(",")}
    assert (found["maintenance"]["Nodes"], found["maintenance"]["Users"]) == ("node[1-2]", "root")
    assert found["course"]["StartTime"].endswith("T09:00:00")
    assert "WEEKLY" in found["course"]["Flags"].split(",")
    assert {*found["course"]["Users"].split(",")} == {"root", "nobody"}
    assert (found["some"]["Nodes"], found["some"]["Groups"]) == ("node1", "daemon")
    assert (found["whole"]["NodeCnt"], found["whole"]["Licenses"]) == ("2", "matlab:2")


def test_what_changes_is_changed_and_what_goes_goes(on: On, machine: str, converge: Converge) -> None:
    by_hand = ("StartTime=2050-10-01T08:00:00", "Duration=60", "Nodes=node2", "Users=root")
    on(machine, "scontrol", "create", "reservation", "ReservationName=by_hand", *by_hand)
    later = {**MAINTENANCE, "duration": "5:00:00", "nodes": ["node2"], "users": ["root", "nobody"]}
    assert changed(converge, machine, "--check", reservations=[later])
    assert shown(on, machine)["maintenance"]["EndTime"] == "2050-12-24T12:00:00", "a check changes nothing"
    assert changed(converge, machine, reservations=[later])
    found = shown(on, machine)
    assert found.keys() == {"maintenance", "by_hand"}
    assert found["maintenance"]["EndTime"] == "2050-12-24T13:00:00"
    assert found["maintenance"]["Nodes"] == "node2"
    assert not changed(converge, machine, reservations=[later])
    on(machine, "scontrol", "update", "reservation", "ReservationName=maintenance", "Users=root")
    assert changed(converge, machine, reservations=[later])
    assert {*shown(on, machine)["maintenance"]["Users"].split(",")} == {"root", "nobody"}


def test_licenses_that_go_are_free(on: On, machine: str, converge: Converge) -> None:
    with_some = {**MAINTENANCE, "licenses": ["matlab:1"]}
    assert changed(converge, machine, reservations=[with_some])
    assert shown(on, machine)["maintenance"]["Licenses"] == "matlab:1"
    assert changed(converge, machine, reservations=[MAINTENANCE])
    assert shown(on, machine)["maintenance"]["Licenses"] == "(null)"
    assert not changed(converge, machine, reservations=[MAINTENANCE])


def test_what_slurm_refuses_is_said(machine: str, converge: Converge) -> None:
    unknown = {**MAINTENANCE, "users": ["nobody-of-this-name"]}
    played = converge(only=machine, tags="configure", reservations=[unknown])
    assert played.returncode == 2
    assert "reservation maintenance: Slurm refuses it: " in played.stdout + played.stderr


def test_one_that_cannot_be_made_anew_stays_and_the_others_are_made(
    on: On, machine: str, converge: Converge
) -> None:
    was = shown(on, machine)["maintenance"]
    anew = {**MAINTENANCE, "features": "large", "users": ["nobody-of-this-name"]}
    other = {**MAINTENANCE, "name": "other", "start": "2050-11-24T08:00"}
    played = converge(only=machine, tags="configure", reservations=[anew, other])
    assert played.returncode == 2
    assert "It is there as it was" in played.stdout + played.stderr
    found = shown(on, machine)
    assert found.keys() == {"maintenance", "other", "by_hand"}
    for word in ("StartTime", "EndTime", "Nodes", "Users", "Features"):
        assert found["maintenance"][word] == was[word]


def test_without_any_all_that_were_declared_go(on: On, machine: str, converge: Converge) -> None:
    assert changed(converge, machine, reservations=[])
    assert shown(on, machine).keys() == {"by_hand"}
    assert not changed(converge, machine, reservations=[])
