#!/usr/bin/python3
"""A stand-in for nvidia-smi that can do what MIG needs: two GPUs, whose state is a file.

A slurmd that starts finds the instances, as it would by NVML.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

STATE = Path("/var/lib/stand-in-gpus.json")
FOUND = Path("/etc/slurm/gres.conf")
FRESH = {str(index): {"mode": "Disabled", "instances": [], "compute": []} for index in range(2)}
SLICES = 7


def say(lines: Sequence[str]) -> None:
    """Prints."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def create(gpu: dict[str, object], words: list[str]) -> int:
    """Makes instances, if MIG is on and they fit."""
    names = words[words.index("-cgi") + 1].split(",")
    if gpu["mode"] != "Enabled" or sum(int(name[0]) for name in names) > SLICES:
        say(["Insufficient Resources"])
        return 1
    gpu["instances"] = names
    gpu["compute"] = names if "-C" in words else []
    return 0


def change(gpu: dict[str, object], words: list[str]) -> int:
    """Anything that changes one GPU."""
    if "-mig" in words:
        gpu["mode"] = "Enabled" if words[-1] == "1" else "Disabled"
    elif "-dci" in words:
        gpu["compute"] = []
    elif "-dgi" in words:
        if gpu["compute"]:
            say(["In use by another client"])
            return 1
        gpu["instances"] = []
    else:
        return create(gpu, words)
    return 0


def main(words: list[str]) -> int:
    """One command."""
    gpus = json.loads(STATE.read_text()) if STATE.exists() else FRESH
    if words[0].startswith("--query-gpu"):
        say([f"{index}, {gpu['mode']}, {gpu['mode']}" for index, gpu in gpus.items()])
        return 0
    if "-lgi" in words:
        rows = [(index, name) for index, gpu in gpus.items() for name in gpu["instances"]]
        say([f"|   {index}  MIG {name:<16} 19       13          6:1     |" for index, name in rows])
        return 0 if rows else 6
    if "-lgip" in words or "-lgipp" in words:
        say(["No MIG-supported devices found."])
        return 6
    code = change(gpus[words[words.index("-i") + 1]], words)
    STATE.write_text(json.dumps(gpus))
    last = max(sum(len(gpu["compute"]) for gpu in gpus.values()) - 1, 0)
    FOUND.write_text(f"Name=gpu Type=mig File=/dev/stand-in-gpu[0-{last}]\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
