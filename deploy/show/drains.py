"""Nodes and what keeps them out of service, as text and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from deploy.engine.drains import Drain, Node, Released
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


def drained_lines(nodes: Sequence[Node]) -> Iterator[str]:
    """What a drain came to: who still has jobs, and what held a node before."""
    busy = [node for node in nodes if node.jobs]
    yield f"drained: {fold(node.name for node in nodes)}"
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


def released_lines(came: Released, resume: str) -> Iterator[str]:
    """What a resume came to; ``resume`` is the command, without nodes."""
    if came.resumed:
        yield f"in service: {fold(node.name for node in came.nodes if node.name in came.resumed)}"
    had = {each.node for each in came.released}
    for node in came.nodes:
        if node.name in came.resumed:
            continue
        if not node.is_drained:
            yield f"{node.name}: was in service"
            continue
        yours = "your drain is released" if node.name in had else "you hold no drain of it"
        yield f"{node.name}: {yours}; it stays drained:"
        for each in node.drains:
            release = "" if each.is_foreign else f"   -> {resume} {node.name} --by {each.who}"
            yield f"  {each.why} ({each.who}){release}"
        if node.held_by_others:
            yield f"  {_by_others(node)}"


def _by_others(node: Node) -> str:
    return f"{node.held_by_others} ({node.by}, not by deploy node drain)"


def said(drain: Drain, now: float) -> str:
    """A drain in words: why, who, how long."""
    return f"{drain.why} ({drain.who}, {age(now - drain.since)} ago)"


def as_json(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """For programs."""
    return [asdict(node) | {"held_by_others": node.held_by_others} for node in nodes]
