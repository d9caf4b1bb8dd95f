"""The program that measures packets, with a network that a test makes."""

import errno
import os
import select
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from deploy.validate.programs import packets

Delivers = Callable[[str, int, int], bool]


@dataclass
class Wire:
    """Stands for the socket and for select: answers at once what a rule lets through."""

    delivers: Delivers
    sent: dict[str, int] = field(default_factory=dict)
    waiting: list[tuple[bytes, tuple[str, int]]] = field(default_factory=list)

    def setsockopt(self, *_: object) -> None:
        pass

    def sendto(self, packet: bytes, place: tuple[str, int]) -> None:
        address = place[0]
        count = self.sent[address] = self.sent.get(address, 0) + 1
        assert packets.checksum(packet) == 0
        if self.delivers(address, count, len(packet)):
            own_header = b"\x45" + bytes(19)
            self.waiting.append((own_header + b"\0" + packet[1:], (address, 0)))
            self.waiting.append((own_header + b"\0" + packet[1:8] + b"another's", (address, 0)))

    def recvfrom(self, _size: int) -> tuple[bytes, tuple[str, int]]:
        return self.waiting.pop(0)

    def readable(self, *_: object) -> tuple[list[Any], list[Any], list[Any]]:
        return ([self] if self.waiting else [], [], [])


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Callable[[Delivers], Wire]:
    def made(delivers: Delivers) -> Wire:
        one = Wire(delivers)
        monkeypatch.setattr(socket, "socket", lambda *_: one)
        monkeypatch.setattr(select, "select", one.readable)
        monkeypatch.setattr(packets, "largest", lambda _address: 1500)
        return one

    return made


def _peers(*addresses: str) -> dict[str, Any]:
    return {"peers": [[f"h{number}", address, 6818] for number, address in enumerate(addresses)]}


def test_all_arrive(wire: Callable[[Delivers], Wire]) -> None:
    wire(lambda *_: True)
    told = packets.measure(_peers("10.0.0.1", "10.0.0.2"))
    assert [*told["peers"]] == ["h0", "h1"]
    for way in told["peers"].values():
        assert (way["sent"], way["lost"], way["blocked_bytes"]) == (50, 0, 0)
        assert 0 < way["seconds"] < 60


def test_a_way_that_loses_some_is_tried_longer(wire: Callable[[Delivers], Wire]) -> None:
    wire(lambda address, count, _size: address == "10.0.0.1" or count % 5 > 0)
    told = packets.measure(_peers("10.0.0.1", "10.0.0.2"))["peers"]
    assert (told["h0"]["sent"], told["h0"]["lost"]) == (50, 0)
    assert (told["h1"]["sent"], told["h1"]["lost"]) == (150, 30)


def test_nothing_arrives(wire: Callable[[Delivers], Wire]) -> None:
    wire(lambda *_: False)
    assert packets.measure(_peers("10.0.0.1"))["peers"] == {
        "h0": {"sent": 50, "lost": 50, "seconds": None, "blocked_bytes": 0}
    }


def test_large_packets_do_not_arrive(wire: Callable[[Delivers], Wire]) -> None:
    wire(lambda _address, _count, size: size < 1000)
    assert packets.measure(_peers("10.0.0.1"))["peers"]["h0"]["blocked_bytes"] == 1500


def test_a_way_that_tells_its_size_is_no_fault(
    wire: Callable[[Delivers], Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = iter((9000, 1500))
    wire(lambda _address, _count, size: size <= 1480)
    monkeypatch.setattr(packets, "largest", lambda _address: next(sizes))
    assert packets.measure(_peers("10.0.0.1"))["peers"]["h0"]["blocked_bytes"] == 0


def test_where_it_may_not_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(socket, "socket", refused)
    told = packets.measure(_peers("10.0.0.1"))
    assert told == {"why": "Operation not permitted", "sent_again": None, "peers": {}}


def test_checksum() -> None:
    assert packets.checksum(struct.pack("!BBHHH", 8, 0, 0, 1, 1)) == 0xF7FD
    assert packets.checksum(b"\xff\xff\x01") == 0xFEFF


def test_what_this_machine_sent_again() -> None:
    again = packets.sent_again()
    assert again is None or 0 <= again <= 100
