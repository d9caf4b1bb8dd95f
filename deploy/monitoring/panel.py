"""What a dashboard is: rows of panels, each with its title, unit and queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["timeseries", "stat", "gauge", "bargauge", "table"]

GREEN, ORANGE, RED = "green", "orange", "red"


@dataclass(frozen=True)
class Query:
    """A query and what its lines are called; ``{{label}}`` stands for a label's value."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel.

    ``thresholds`` are values from which on a colour holds; below the first it is green. ``needs`` says what a
    cluster must have for it to show data, such as a GPU; empty when every cluster has it.
    """

    title: str
    unit: str
    queries: Sequence[Query]
    kind: Kind = "timeseries"
    meaning: str = ""
    width: int = 8
    height: int = 8
    thresholds: Sequence[tuple[float, str]] = ()
    stacked: bool = False
    minimum: float | None = 0
    maximum: float | None = None
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Of a table: label or ``Value #A`` to title and unit; what is not named is not shown."""
    link: tuple[str, str] | None = None
    """A dashboard's uid and the variable there that a value's label of the same name fills, if any."""
    link_label: str = ""
    """That label, where it is called otherwise than the variable."""
    needs: str = ""


@dataclass(frozen=True)
class Row:
    """Panels under a title."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Variable:
    """What the reader chooses: one of the values of a label, or several."""

    name: str
    label: str
    query: str
    several: bool = True


@dataclass(frozen=True)
class Dashboard:
    """One dashboard; ``uid`` is in its address and never changes."""

    uid: str
    title: str
    meaning: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = ()

    @property
    def panels(self) -> list[Panel]:
        """All panels."""
        return [panel for row in self.rows for panel in row.panels]


PARTITION = Variable("partition", "Partition", "label_values(slurm_partition_nodes, partition)")
NODE = Variable("node", "Node", "label_values(node_uname_info, instance)")
USER = Variable("user", "User", "label_values(slurm_jobs, user)")
ACCOUNT = Variable("account", "Account", "label_values(slurm_fairshare_shares_ratio, account)")
JOB = Variable("job_id", "Job", "label_values(slurm_job_info, job_id)", several=False)
