"""A Slurm that keeps one reason for each node, for the ledger of drains, and saves now and then."""

import re
import time
from pathlib import Path

from ClusterShell.NodeSet import NodeSet

from deploy.run.slurm_saves import packed


class Slurm:
    """Nodes with states and reasons; a command of any other form than those few is an error."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.saves_after = 0
        """How often it is asked for its nodes until it saves."""
        self.saves_when_told = False
        self.reasons = {"node1": "", "node2": "", "node3": ""}
        self.partitions: dict[str, str] = {}
        self.tails: dict[str, str] = {}
        """What a node's line has behind the reason."""
        self.started: dict[str, str] = {}
        self.reservations: dict[str, dict[str, str]] = {}
        self.requeueable = True
        self.ended: list[tuple[str, ...]] = []
        self.jobs = ""
        self.fails_at = ""
        self.keeps = 0
        """How often the jobs of a reservation must be cancelled until it can go."""

    def run(self, *command: str) -> tuple[str, bool]:
        match command:
            case ("scontrol", "--oneliner", "show", "node"):
                self.saves_after -= 1
                if self.saves_after <= 0:
                    self._save()
                return "".join(map(self._line, self.reasons)), True
            case ("squeue", *_):
                return self.jobs, True
            case ("scontrol", "requeue", _) | ("scancel", _):
                is_done = command[0] == "scancel" or self.requeueable
                self.ended += [command] * is_done
                self.keeps -= bool(self.keeps) and command[1].startswith("--reservation=")
                return "", is_done
            case ("scontrol", "show", "hostnames", folded):
                return "\n".join(NodeSet(folded)), True
            case ("scontrol", "update", name, state, *more) if name.startswith("NodeName="):
                return self._update(name.removeprefix("NodeName="), state, "".join(more))
        return self._told(*command), not self._is_kept(*command)

    def _save(self) -> None:
        for name, texts in (("node_state", self.reasons.values()), ("resv_state", self.reservations)):
            (self.state / name).write_bytes(b"".join(packed(text) for text in texts))

    def die(self) -> None:
        """It is as it had saved itself."""
        saved = (self.state / "node_state").read_bytes()
        self.reasons = {node: why if packed(why) in saved else "" for node, why in self.reasons.items()}

    def _is_kept(self, *command: str) -> bool:
        return command[:2] == ("scontrol", "delete") and self.keeps > 0

    def _update(self, node: str, state: str, reason: str) -> tuple[str, bool]:
        if node == self.fails_at:
            return "slurm_update error: Unable to contact slurm controller", False
        self.saves_after -= self.saves_after * self.saves_when_told
        self.reasons[node] = reason.removeprefix("Reason=") if state == "State=DRAIN" else ""
        return "", True

    def _told(self, *command: str) -> str:
        match command:
            case ("scontrol", "show", "config"):
                return f"SlurmUser = slurm(64030)\nStateSaveLocation       = {self.state}\n"
            case ("scontrol", "--oneliner", "show", "reservation"):
                lines = [" ".join(f"{k}={v}" for k, v in it.items()) for it in self.reservations.values()]
                return "\n".join(lines) or "No reservations in the system"
            case ("scontrol", "create" | "update", name, *words):
                self.saves_after -= self.saves_after * self.saves_when_told
                made = self.reservations.setdefault(name.partition("=")[2], {})
                made |= dict(word.split("=", 1) for word in (name, *words))
                made["Nodes"] = str(NodeSet(made["Nodes"]))
                seconds = re.fullmatch(r"now(?:\+(\d+)seconds)?", made["StartTime"])
                if seconds:
                    start = time.localtime(time.time() + int(seconds[1] or 0))
                    made["StartTime"] = time.strftime("%Y-%m-%dT%H:%M:%S", start)
            case ("scontrol", "delete", name):
                if not self.keeps:
                    del self.reservations[name.partition("=")[2]]
            case _:
                raise AssertionError(command)
        return ""

    def _line(self, node: str) -> str:
        reason = self.reasons[node]
        state, more = (
            ("IDLE+DRAIN", f" Reason={reason} [root@2026-11-20T10:00:00]") if reason else ("IDLE", "")
        )
        partitions = f" Partitions={self.partitions[node]}" if node in self.partitions else ""
        started = f" SlurmdStartTime={self.started.get(node, 'None')}"
        more += self.tails.get(node, "")
        return f"NodeName={node} Arch=x86_64 State={state} ThreadsPerCore=1{partitions}{started}{more}\n"
