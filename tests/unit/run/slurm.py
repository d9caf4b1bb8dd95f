"""A Slurm that keeps one reason for each node, for the ledger of drains."""


class Slurm:
    """Nodes with states and reasons; a command of any other form than those few is an error."""

    def __init__(self) -> None:
        self.reasons = {"node1": "", "node2": "", "node3": ""}
        self.partitions: dict[str, str] = {}
        self.started: dict[str, str] = {}
        self.jobs = ""
        self.fails_at = ""

    def run(self, *command: str) -> tuple[str, bool]:
        match command:
            case ("scontrol", "--oneliner", "show", "node"):
                return "".join(map(self._line, self.reasons)), True
            case ("squeue", *_):
                return self.jobs, True
            case ("scontrol", "update", name, state, *more):
                node = name.removeprefix("NodeName=")
                if node == self.fails_at:
                    return "slurm_update error: Unable to contact slurm controller", False
                self.reasons[node] = "".join(more).removeprefix("Reason=") if state == "State=DRAIN" else ""
                return "", True
        raise AssertionError(command)

    def _line(self, node: str) -> str:
        reason = self.reasons[node]
        state, more = (
            ("IDLE+DRAIN", f" Reason={reason} [root@2026-11-20T10:00:00]") if reason else ("IDLE", "")
        )
        partitions = f" Partitions={self.partitions[node]}" if node in self.partitions else ""
        started = f" SlurmdStartTime={self.started.get(node, 'None')}"
        return f"NodeName={node} Arch=x86_64 State={state} ThreadsPerCore=1{partitions}{started}{more}\n"
