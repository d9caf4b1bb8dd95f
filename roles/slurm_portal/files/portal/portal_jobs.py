"""What Slurm says of a job, and what that means in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

LINE = "%i|%j|%P|%a|%T|%r|%S|%L|%B|%A|%k"
"""The format of squeue that is read here."""
ENDED = "JobID,JobName,Partition,Account,State,Elapsed,ExitCode"
"""That of sacct."""
ACTIVE = frozenset({"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"})
WAITING = frozenset(
    {
        *("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"),
        "EXPEDITING",  # from Slurm 25.11 on
    }
)
_REASONS = {
    "Priority": "jobs with a higher priority are before yours",
    "Resources": "what you asked for is in use",
    "AssocGrpGRES": "the GPUs of your account are in use",
    "AssocGrpGRESMinutes": "the GPU hours of your account are used up",
    "AssocGrpCpuLimit": "the CPUs of your account are in use",
    "AssocMaxJobsLimit": "you have as many jobs as your account allows",
    "QOSMaxGRESPerUser": "you have as many GPUs as this QOS allows",
    "QOSMaxJobsPerUserLimit": "you have as many jobs as this QOS allows",
    "JobArrayTaskLimit": "as many tasks of its array run as you allowed at once",
    "Dependency": "a job that it depends on has not ended",
    "PartitionDown": "the partition takes no jobs now",
    "PartitionNodeLimit": "no node of the partition has what you asked for",
    "PartitionTimeLimit": "you asked for more time than the partition allows",
    "ReqNodeNotAvail": "the nodes are out of service or reserved",
    "Reservation": "it waits for a reservation",
    "JobHeldAdmin": "an admin holds it back",
    "JobHeldUser": "it is held back",
    "BeginTime": "it was put back, and starts later",
    "None": "Slurm has not looked at it yet",
}
_ENDS = {
    "TIMEOUT": "its time was over",
    "OUT_OF_MEMORY": "it needed more memory than it had asked for",
    "NODE_FAIL": "its node failed",
    "PREEMPTED": "a job with a higher priority took its place",
    "CANCELLED": "it was cancelled",
    "FAILED": "the server ended with an error, which ~/.slurm-portal.log on its node says",
    "BOOT_FAIL": "its node did not start",
    "DEADLINE": "its deadline came",
    "COMPLETED": "it ended by itself",
    "UNKNOWN": "Slurm does not know it any more",
}
_COLUMNS = 11
NO_JUPYTER = 78
"""The exit code of a server whose image has not what it needs, as start_in_image.sh says it."""
_NO_JUPYTER = (
    "its image has no JupyterLab; it needs python3, jupyterhub-singleuser and jupyter-lab on its PATH"
)


@dataclass(frozen=True)
class Job:
    """A job as squeue or sacct says it."""

    number: str
    name: str = ""
    partition: str = ""
    account: str = ""
    state: str = ""
    reason: str = ""
    start: str = ""
    left: str = ""
    node: str = ""
    comment: str = ""
    elapsed: str = ""
    code: int = 0
    raw: str = ""
    """The number without its task of an array."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, for all that is known."""
        return bool(self.state) and self.state not in ACTIVE and self.state not in WAITING

    def words(self) -> str:
        """In a sentence, for its user."""
        if self.state in WAITING:
            why = _REASONS.get(
                self.reason.split(",", maxsplit=1)[0].strip("()"), self.reason or "no reason known"
            )
            start = (
                f" Slurm expects it to start at {self.start.replace('T', ' ')}."
                if self.start[:1].isdigit()
                else ""
            )
            return f"Job {self.number} waits: {why}.{start}"
        if self.state in ACTIVE:
            where = f" on {self.node}" if self.node else ""
            return f"Job {self.number} runs{where}; time left: {self.left or 'unknown'}."
        if self.state == "FAILED" and self.code == NO_JUPYTER:
            return f"Job {self.number} has ended: {_NO_JUPYTER}."
        return f"Job {self.number} has ended: {_ENDS.get(self.state, self.state)}."

    def shown(self) -> dict[str, Any]:
        """For a page: everything, with the sentence."""
        return {**asdict(self), "words": self.words()}


def queued(text: str) -> list[Job]:
    """The jobs of squeue's answer, in the format LINE."""
    found = []
    for line in text.splitlines():
        words = line.split("|", _COLUMNS - 1)
        if len(words) == _COLUMNS:
            number, name, partition, account, state, reason, start, left, node, raw, comment = words
            where = "" if node in {"n/a", "(null)", "None"} else node
            found.append(
                Job(number, name, partition, account, state, reason, start, left, where, comment, raw=raw)
            )
    return found


def ended(text: str) -> list[Job]:
    """The jobs of sacct's answer, in the format ENDED."""
    found = []
    for line in text.splitlines():
        words = line.split("|")
        if len(words) == len(ENDED.split(",")):
            number, name, partition, account, state, elapsed, code = words
            # "CANCELLED by 1000"
            state = state.split()[0] if state else ""
            found.append(Job(number, name, partition, account, state, elapsed=elapsed, code=exit_code(code)))
    return found


def exit_code(text: str) -> int:
    """Of Slurm's ``CODE:SIGNAL``."""
    code = text.partition(":")[0]
    return int(code) if code.isdigit() else 0
