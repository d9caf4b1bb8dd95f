"""Who uses the cluster, and who is due."""

from deploy.monitoring.panel import ACCOUNT, USER, Dashboard, Panel, Query, Row

_WHO = 'user=~"$user",account=~"$account"'
_RUNS = f'{_WHO},state="running"'
_WAITS = f'{_WHO},state="pending"'
_SHARES = '{user=~"$user",user!="",account=~"$account"}'
_TOP = "topk(15, sum by ({0}) ({1}{{{2}}}))"


def _top(title: str, unit: str, metric: str, selector: str, by: str) -> Panel:
    return Panel(
        title,
        unit,
        (Query(_TOP.format(by, metric, selector), f"{{{{{by}}}}}"),),
        stacked=True,
        link=("deploy-users", by),
        needs="jobs that wait" if selector == _WAITS else "jobs that run",
    )


USERS = Dashboard(
    "deploy-users",
    "Users and accounts",
    "Who has what, who waits, and what fair share says of it.",
    (
        Row(
            "Users",
            (
                _top("CPUs that users have", "short", "slurm_jobs_cpus", _RUNS, "user"),
                _top("GPUs that users have", "short", "slurm_jobs_gpus", _RUNS, "user"),
                _top("Memory that users have", "bytes", "slurm_jobs_memory_bytes", _RUNS, "user"),
                _top("Jobs that run", "short", "slurm_jobs", _RUNS, "user"),
                _top("Jobs that wait", "short", "slurm_jobs", _WAITS, "user"),
                _top("GPUs that users wait for", "short", "slurm_jobs_gpus", _WAITS, "user"),
            ),
        ),
        Row(
            "Accounts",
            (
                _top("CPUs that accounts have", "short", "slurm_jobs_cpus", _RUNS, "account"),
                _top("GPUs that accounts have", "short", "slurm_jobs_gpus", _RUNS, "account"),
                _top("Jobs of accounts that wait", "short", "slurm_jobs", _WAITS, "account"),
            ),
        ),
        Row(
            "Fair share",
            (
                Panel(
                    "Fair share",
                    "short",
                    (
                        Query(f"slurm_fairshare_factor{_SHARES}"),
                        Query(f"slurm_fairshare_shares_ratio{_SHARES}"),
                        Query(f"slurm_fairshare_usage_ratio{_SHARES}"),
                        Query(f"slurm_fairshare_usage_seconds{_SHARES}"),
                    ),
                    kind="table",
                    width=16,
                    meaning="The factor is 1 for who used nothing and 0 for who used far too much.",
                    columns={
                        "account": ("Account", ""),
                        "user": ("User", ""),
                        "Value #A": ("Factor", "percentunit"),
                        "Value #B": ("Shares among siblings", "percentunit"),
                        "Value #C": ("Usage among siblings", "percentunit"),
                        "Value #D": ("Usage, decayed", "s"),
                    },
                    needs="accounting",
                ),
                Panel(
                    "Factor",
                    "percentunit",
                    (Query(f"slurm_fairshare_factor{_SHARES}", "{{account}} {{user}}"),),
                    maximum=1,
                    needs="accounting",
                ),
            ),
        ),
    ),
    (USER, ACCOUNT),
)
