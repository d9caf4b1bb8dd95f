"""Nodes and what keeps them out of service, as text and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from deploy.engine.drains import Drain, Node, Released
from deploy.engine.repair import Repaired
from deploy.judge.age import age
from deploy.site.node_lists import fold


def node_lines(nodes: Sequence[Node], now: float) -> Iterator[str]:
    """A line per node, and one below it for all that holds it."""
    width = max((len(node.name) for node in nodes), default=0)
    for node in nodes:
        jobs = f"{len(node.jobs)} job{'s' * (len(node.jobs) != 1)}"
        yield f"{node.name:<{width}}  {'+'.join(node.states).lower()}  {jobs}"
        for each in node.drains:
            yield f"{'':{width}}    held: {said(each, now)}"
        if node.held_by_others:
            yield f"{'':{width}}    held: {_by_others(node)}"
        for each in node.planned:
            yield f"{'':{width}}    reserved: {each.why} ({each.who}), from {_moment(each.since)} on"


def drained_lines(nodes: Sequence[Node]) -> Iterator[str]:
    """What a drain came to: who still has jobs, and what held a node before."""
    busy = [node for node in nodes if node.jobs]
    drained, reserved = [n for n in nodes if n.is_drained], [n for n in nodes if not n.is_drained]
    if drained:
        yield f"drained: {fold(node.name for node in drained)}"
    for start in sorted({each.since for node in reserved for each in node.planned}):
        names = [node.name for node in reserved if start in {each.since for each in node.planned}]
        yield f"reserved from {_moment(start)} on: {fold(names)}; no job starts there that would end later"
    for node in nodes:
        if node.held_by_others:
            yield f"{node.name}: was drained before, and keeps that reason: {_by_others(node)}"
    for node in busy:
        yield f"{node.name}: runs until they end: {', '.join(node.jobs)}"


def back_lines(nodes: Sequence[Node], done: str) -> Iterator[str]:
    """Nodes with which something was ``done``, and what keeps any of them out of service."""
    yield f"{done}: {fold(node.name for node in nodes)}"
    for node in nodes:
        if node.is_drained:
            held = [f"{each.why} ({each.who})" for each in node.drains]
            held += [_by_others(node)] if node.held_by_others else []
            yield f"{node.name}: stays drained, as it was before: {'; '.join(held)}"


def repaired_lines(came: Repaired) -> Iterator[str]:
    """What a repair came to."""
    if came.repaired:
        yield from back_lines(came.repaired, "repaired")
    if came.well:
        yield f"nothing is wrong: {fold(came.well)}"
    if came.left:
        yield f"not repaired: {fold(came.left)}"
    if not (came.repaired or came.well or came.left):
        yield "no node is out of service for a fault"


def released_lines(came: Released, resume: str) -> Iterator[str]:
    """What a resume came to; ``resume`` is the command, without nodes."""
    if came.resumed:
        yield f"in service: {fold(node.name for node in came.nodes if node.name in came.resumed)}"
    had = {each.node for each in came.released}
    for node in came.nodes:
        if node.name in came.resumed:
            continue
        if not node.is_drained:
            what = "your reservation is released" if node.name in had else "was in service"
            yield f"{node.name}: {what}"
            continue
        yours = "your drain is released" if node.name in had else "you hold no drain of it"
        yield f"{node.name}: {yours}; it stays drained:"
        for each in node.drains:
            release = "" if each.is_foreign else f"   -> {resume} {node.name} --by {each.who}"
            yield f"  {each.why} ({each.who}){release}"
        if node.held_by_others:
            yield f"  {_by_others(node)}"


def _moment(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


def _by_others(node: Node) -> str:
    return f"{node.held_by_others} ({node.by}, not by deploy node drain)"


def said(drain: Drain, now: float) -> str:
    """A drain in words: why, who, how long, and until what is so."""
    until = f", until {drain.until}" if drain.until else ""
    return f"{drain.why} ({drain.who}, {age(now - drain.since)} ago){until}"


def as_json(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """For programs."""
    return [asdict(node) | {"held_by_others": node.held_by_others} for node in nodes]
