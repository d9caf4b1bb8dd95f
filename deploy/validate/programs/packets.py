"""How packets travel from a host to others: which are lost, how long they take, how large they may be.

Sends ICMP echo requests (RFC 792) as root, changes nothing. ``measure`` is called with a dictionary::

    {"why", "sent_again", "peers": {name: {"sent", "lost", "seconds", "blocked_bytes"}}}

is what it returns. ``sent_again`` are the percent of its segments that TCP sent more than once. ``seconds``
is the shortest time of any packet, which does not tell how busy the hosts are; ``blocked_bytes`` the size of
packets that the way should carry and none of which arrives, 0 when they do.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from contextlib import suppress
from typing import Any

_COUNT, _MORE, _LARGE = 50, 100, 10
_GAP = 0.01
_PATIENCE = 2.0
_REQUEST, _REPLY = 8, 0
_HEADERS = 28  # of IP and ICMP
_SMALL = 56
_BUFFER = 4 << 20
# ip(7); Python does not name them before 3.14.
_IP_MTU_DISCOVER, _IP_PMTUDISC_DO, _IP_MTU = 10, 2, 14
_LARGEST_LINK = 9500


class Pinger:
    """A socket, and what it has sent."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        with suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), _BUFFER)
        self.socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
        self.number = int.from_bytes(os.urandom(2), "big")
        self.nonce = os.urandom(8)
        self.sequence = 0

    def round_trips(self, targets: list[str], count: int, size: int) -> dict[str, list[float]]:
        """By address, the seconds that each packet took that came back."""
        waiting: dict[tuple[str, int], float] = {}
        found: dict[str, list[float]] = {address: [] for address in targets}
        for _ in range(count):
            for address in targets:
                self.sequence = (self.sequence + 1) % 65536
                waiting[address, self.sequence] = time.monotonic()
                # What is too large for the way is as good as lost.
                with suppress(OSError):
                    self.socket.sendto(self._request(size), (address, 0))
            self._receive(waiting, found, _GAP)
        while waiting and self._receive(waiting, found, _PATIENCE):
            pass
        return found

    def _receive(
        self, waiting: dict[tuple[str, int], float], found: dict[str, list[float]], seconds: float
    ) -> bool:
        """Takes the answers that are there or come in time; says whether there was one."""
        deadline, is_any = time.monotonic() + seconds, False
        while waiting and select.select([self.socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
            packet, (address, _) = self.socket.recvfrom(65536)
            now, start = time.monotonic(), (packet[0] & 15) * 4
            kind, _, _, number, sequence = struct.unpack_from("!BBHHH", packet, start)
            is_own = kind == _REPLY and number == self.number and packet[start + 8 :].startswith(self.nonce)
            if is_own and (sent := waiting.pop((address, sequence), None)) is not None:
                found[address].append(now - sent)
                is_any = True
        return is_any

    def _request(self, size: int) -> bytes:
        payload = self.nonce.ljust(size, b"\0")
        head = struct.pack("!BBHHH", _REQUEST, 0, 0, self.number, self.sequence)
        return (
            struct.pack("!BBHHH", _REQUEST, 0, checksum(head + payload), self.number, self.sequence) + payload
        )


def checksum(text: bytes) -> int:
    """Of a packet whose own field for it is zero: RFC 1071."""
    padded = text + b"\0" * (len(text) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def largest(address: str) -> int:
    """The largest packet that this host believes the way to carry; 0 when there is no way."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect((address, 9))
        size: int = one.getsockopt(socket.IPPROTO_IP, _IP_MTU)
        return size
    return 0


def blocked(pinger: Pinger, address: str) -> int:
    """The size of packets that should arrive and do not; a smaller way that says so is no fault."""
    before = largest(address)
    if (
        not before
        or before > _LARGEST_LINK
        or pinger.round_trips([address], _LARGE, before - _HEADERS)[address]
    ):
        return 0
    after = largest(address)
    if 0 < after < before and pinger.round_trips([address], _LARGE, after - _HEADERS)[address]:
        return 0
    return before


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything once; peers without an IPv4 address are left out."""
    peers: dict[str, str] = {}
    for name, address, *_ in arguments["peers"]:
        with suppress(OSError):
            peers[name] = socket.gethostbyname(address)
    try:
        pinger = Pinger()
    except OSError as problem:
        return {"why": problem.strerror or str(problem), "sent_again": None, "peers": {}}
    took = pinger.round_trips(sorted({*peers.values()}), _COUNT, _SMALL)
    sent = dict.fromkeys(took, _COUNT)
    doubtful = [address for address, seconds in took.items() if 0 < len(seconds) < _COUNT]
    for address, seconds in pinger.round_trips(doubtful, _MORE, _SMALL).items():
        took[address] += seconds
        sent[address] += _MORE
    found = {
        address: {
            "sent": sent[address],
            "lost": sent[address] - len(seconds),
            "seconds": min(seconds, default=None),
            "blocked_bytes": blocked(pinger, address) if seconds else 0,
        }
        for address, seconds in took.items()
    }
    return {
        "why": "",
        "sent_again": sent_again(),
        "peers": {name: found[address] for name, address in peers.items()},
    }


def sent_again() -> float | None:
    """How much of what TCP sent since the host started it had to send again, in percent: proc_net_snmp."""
    with open("/proc/net/snmp", encoding="ascii") as file:
        names, values = [line.split()[1:] for line in file if line.startswith("Tcp:")]
    counters = dict(zip(names, map(int, values)))  # noqa: B905 - Python 3.9
    return 100 * counters["RetransSegs"] / counters["OutSegs"] if counters["OutSegs"] else None
