"""An upgrade of Slurm as one self-contained HTML page."""

from collections import Counter
from typing import TYPE_CHECKING

from deploy.judge.upgrade_outcome import Outcome
from deploy.show.html import render
from deploy.show.text import duration
from deploy.show.validation import verdict_line
from deploy.site.node_lists import fold

if TYPE_CHECKING:
    from deploy.engine.proofs import Proofs


def as_html(came: Outcome, proofs: "Proofs | None") -> str:
    """What ran before and runs now, what became of jobs, and what the cluster does otherwise."""
    return render(
        "upgrade.html.j2",
        came=came,
        proofs=proofs,
        is_bad=bool(came.exit_code or (proofs and proofs.exit_code)),
        old=sorted(set(filter(None, came.before.values()))),
        fates=sorted(Counter((fate.before.lower(), fate.now.lower()) for fate in came.jobs).items()),
        verdict=verdict_line(proofs.after.validation) if proofs else "",
        before=verdict_line(proofs.before.validation) if proofs and proofs.before else "",
        duration=duration,
        fold=fold,
    )
