"""Which kernel modules of which branch drive the GPUs of a machine, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible.module_utils.nvidia_devices import Architecture, Device, architecture

_FIRST_OPEN_BRANCH = 515


class NotDrivenError(Exception):
    """What was asked for does not drive these GPUs; the text says why and what does."""


def architectures(gpus: Sequence[Device]) -> list[Architecture]:
    """The generations of the GPUs that are known, each once."""
    found = (architecture(gpu.number) for gpu in gpus)
    return list(dict.fromkeys(known for known in found if known is not None))


def choose_modules(known: Sequence[Architecture], wish: str, *, prefers_open: bool) -> str:
    """``open``, ``proprietary`` or ``none``; ``prefers_open`` where the packages have no reason against it.

    A GPU that is not known here is a new one, as the old ones are all known: open modules are for it.
    """
    required = [each.name for each in known if each.open_modules == "required"]
    refused = [each.name for each in known if each.open_modules == "refused"]
    if wish == "none":
        return wish
    if why := _objection(required, refused, wish):
        raise NotDrivenError(why)
    if wish != "auto":
        return wish
    if required or (prefers_open and not refused):
        return "open"
    return "proprietary"


def _objection(required: Sequence[str], refused: Sequence[str], wish: str) -> str:
    """Why no kernel modules, or not those of the wish, drive these generations; empty when they do."""
    if required and refused:
        return (
            f"no kernel module drives both {required[0]}, which needs the open one, and {refused[0]}, "
            "which only the proprietary one drives: take one of these GPUs out of the machine"
        )
    setting = "set nvidia_driver_kernel_modules"
    if wish == "open" and refused:
        return f"the open kernel modules do not drive {refused[0]}: {setting}: proprietary"
    if wish == "proprietary" and required:
        return f"only the open kernel modules drive {required[0]}: {setting}: open"
    return ""


def check_branch(known: Sequence[Architecture], branch: int, modules: str) -> Iterator[str]:
    """Why a branch does not drive the GPUs."""
    for each in known:
        if branch < each.first_branch:
            yield f"{each.name} needs branch {each.first_branch} or later, and {branch} is to be installed"
        elif each.last_branch and branch > each.last_branch:
            yield f"the last branch for {each.name} is {each.last_branch}, and {branch} is to be installed"
    if modules == "open" and branch < _FIRST_OPEN_BRANCH:
        yield f"open kernel modules are part of branch {_FIRST_OPEN_BRANCH} and later, not of {branch}"
