"""slurmctld itself: its schedulers, queues and callers."""

from deploy.monitoring.panel import ORANGE, RED, Dashboard, Panel, Query, Row

_RATE = "[$__rate_interval]"

SCHEDULER = Dashboard(
    "deploy-scheduler",
    "Slurm scheduler",
    "slurmctld's own statistics, which it starts anew at midnight and when it starts.",
    (
        Row(
            "Now",
            (
                Panel(
                    "slurmctld answers",
                    "bool_yes_no",
                    (Query("slurm_controller_up", "{{controller}}"),),
                    kind="stat",
                    width=6,
                    height=5,
                    thresholds=((0, RED), (1, "green")),
                ),
                Panel(
                    "slurmdbd answers",
                    "bool_yes_no",
                    (Query('slurm_exporter_collect_success{command="accounting"}'),),
                    kind="stat",
                    width=6,
                    height=5,
                    thresholds=((0, RED), (1, "green")),
                    needs="accounting",
                ),
                Panel(
                    "Slurm",
                    "none",
                    (Query("slurm_info", "{{cluster}} {{version}}"),),
                    kind="table",
                    width=6,
                    height=5,
                    columns={"cluster": ("Cluster", ""), "version": ("Version", "")},
                ),
                Panel(
                    "Runs since",
                    "s",
                    (Query("time() - slurm_controller_start_timestamp_seconds"),),
                    kind="stat",
                    width=6,
                    height=5,
                ),
            ),
        ),
        Row(
            "Schedulers",
            (
                Panel(
                    "How long a round takes",
                    "s",
                    (
                        Query("slurm_scheduler_main_last_cycle_seconds", "main"),
                        Query("slurm_scheduler_backfill_last_cycle_seconds", "backfill"),
                    ),
                ),
                Panel(
                    "Rounds a minute",
                    "short",
                    (
                        Query("rate(slurm_scheduler_main_cycles_total[10m]) * 60", "main"),
                        Query("rate(slurm_scheduler_backfill_cycles_total[10m]) * 60", "backfill"),
                    ),
                ),
                Panel(
                    "Jobs looked at",
                    "short",
                    (
                        Query("slurm_scheduler_main_queue", "main"),
                        Query("slurm_scheduler_backfill_last_depth", "backfill, tried"),
                        Query("slurm_scheduler_backfill_queue", "backfill, waiting"),
                    ),
                ),
                Panel(
                    "Jobs an hour",
                    "short",
                    (
                        Query("increase(slurm_scheduler_jobs_submitted_total[1h])", "submitted"),
                        Query("increase(slurm_scheduler_jobs_started_total[1h])", "started"),
                        Query("increase(slurm_scheduler_jobs_completed_total[1h])", "completed"),
                        Query("increase(slurm_scheduler_jobs_canceled_total[1h])", "cancelled"),
                        Query("increase(slurm_scheduler_jobs_failed_total[1h])", "failed"),
                        Query("increase(slurm_scheduler_backfilled_jobs_total[1h])", "started by backfill"),
                    ),
                ),
                Panel(
                    "Longest and average round of the main scheduler",
                    "s",
                    (
                        Query("slurm_scheduler_main_max_cycle_seconds", "longest"),
                        Query("slurm_scheduler_main_mean_cycle_seconds", "average"),
                    ),
                ),
                Panel(
                    "Longest round of the backfill scheduler",
                    "s",
                    (Query("slurm_scheduler_backfill_max_cycle_seconds", "longest"),),
                ),
            ),
        ),
        Row(
            "Load",
            (
                Panel(
                    "Threads that answer",
                    "percentunit",
                    (
                        Query(
                            "slurm_scheduler_threads / on (instance) slurm_scheduler_threads_max", "threads"
                        ),
                    ),
                    thresholds=((0.6, ORANGE), (0.9, RED)),
                    meaning="Of those that slurmctld has; calls wait when all are busy.",
                ),
                Panel(
                    "Messages to slurmdbd that wait",
                    "short",
                    (Query("slurm_scheduler_dbd_queue", "messages"),),
                    meaning="They are lost from MaxDBDMsgs on.",
                ),
                Panel(
                    "Messages to nodes that wait",
                    "short",
                    (
                        Query("slurm_scheduler_agent_queue", "messages"),
                        Query("slurm_scheduler_agent_threads", "threads that send"),
                    ),
                ),
                Panel(
                    "Calls by type",
                    "reqps",
                    (Query(f"topk(10, rate(slurm_rpc_requests_total{_RATE}))", "{{type}}"),),
                ),
                Panel(
                    "Calls by user",
                    "reqps",
                    (Query(f"topk(10, rate(slurm_rpc_user_requests_total{_RATE}))", "{{user}}"),),
                ),
                Panel(
                    "Time spent on calls, by type",
                    "percentunit",
                    (Query(f"topk(10, rate(slurm_rpc_seconds_total{_RATE}))", "{{type}}"),),
                    meaning="1 is a thread that does nothing else.",
                ),
                Panel(
                    "Time spent on calls, by user",
                    "percentunit",
                    (Query(f"topk(10, rate(slurm_rpc_user_seconds_total{_RATE}))", "{{user}}"),),
                ),
            ),
        ),
        Row(
            "The exporter",
            (
                Panel(
                    "Answers",
                    "bool_yes_no",
                    (Query("slurm_exporter_collect_success", "{{command}}"),),
                    kind="stat",
                    width=12,
                    thresholds=((0, RED), (1, "green")),
                ),
                Panel(
                    "How long commands take",
                    "s",
                    (Query("slurm_exporter_collect_duration_seconds", "{{command}}"),),
                    width=4,
                ),
                Panel(
                    "Age of what is shown",
                    "s",
                    (Query("time() - slurm_exporter_collect_timestamp_seconds", "{{command}}"),),
                    width=4,
                ),
                Panel(
                    "CPU that it takes",
                    "percentunit",
                    (Query("rate(slurm_exporter_cpu_seconds_total[10m])", "exporter"),),
                    width=4,
                ),
            ),
        ),
    ),
)
