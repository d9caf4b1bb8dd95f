"""File systems, disks and the database."""

from deploy.monitoring.panel import NODE, ORANGE, RED, Dashboard, Panel, Query, Row

_ON = 'instance=~"$node"'
_REAL = f'{_ON},fstype!~"tmpfs|ramfs|squashfs|iso9660"'
_NAME = "{{instance}} {{mountpoint}}"
_DISK = "{{instance}} {{device}}"
_RATE = "[$__rate_interval]"
_DB = "a database"

STORAGE = Dashboard(
    "deploy-storage",
    "Storage",
    "Room and speed of file systems and disks, and the database.",
    (
        Row(
            "File systems",
            (
                Panel(
                    "Fullest",
                    "percentunit",
                    (
                        Query(
                            (
                                f"topk(10, 1 - node_filesystem_avail_bytes{{{_REAL}}} / "
                                f"node_filesystem_size_bytes{{{_REAL}}})"
                            ),
                            _NAME,
                        ),
                    ),
                    kind="bargauge",
                    width=12,
                    maximum=1,
                    thresholds=((0.8, ORANGE), (0.95, RED)),
                ),
                Panel(
                    "File systems",
                    "bytes",
                    (
                        Query(
                            "sum by (instance, mountpoint, fstype, device) "
                            f"(node_filesystem_size_bytes{{{_REAL}}})"
                        ),
                        Query(
                            "sum by (instance, mountpoint, fstype, device) "
                            f"(node_filesystem_avail_bytes{{{_REAL}}})"
                        ),
                        Query(
                            "sum by (instance, mountpoint, fstype, device) "
                            f"(node_filesystem_readonly{{{_REAL}}})"
                        ),
                    ),
                    kind="table",
                    width=12,
                    columns={
                        "instance": ("Host", ""),
                        "mountpoint": ("Where", ""),
                        "fstype": ("Type", ""),
                        "Value #A": ("Size", "bytes"),
                        "Value #B": ("Free", "bytes"),
                        "Value #C": ("Read-only", "bool_yes_no"),
                    },
                    link=("deploy-nodes", "node"),
                    link_label="Host",
                ),
                Panel(
                    "Used",
                    "percentunit",
                    (
                        Query(
                            (
                                f"1 - node_filesystem_avail_bytes{{{_REAL}}} / "
                                f"node_filesystem_size_bytes{{{_REAL}}}"
                            ),
                            _NAME,
                        ),
                    ),
                    maximum=1,
                ),
                Panel(
                    "Free in a day, as things go",
                    "bytes",
                    (Query(f"predict_linear(node_filesystem_avail_bytes{{{_REAL}}}[3h], 86400)", _NAME),),
                    minimum=None,
                ),
                Panel(
                    "Inodes used",
                    "percentunit",
                    (
                        Query(
                            f"1 - node_filesystem_files_free{{{_REAL}}} / node_filesystem_files{{{_REAL}}}",
                            _NAME,
                        ),
                    ),
                    maximum=1,
                ),
                Panel(
                    "File systems that do not answer",
                    "short",
                    (Query(f"sum by (instance) (node_filesystem_device_error{{{_ON}}})", "{{instance}}"),),
                    meaning="A network file system whose server is gone, or a disk that fails.",
                ),
            ),
        ),
        Row(
            "Disks",
            (
                Panel("Read", "Bps", (Query(f"rate(node_disk_read_bytes_total{{{_ON}}}{_RATE})", _DISK),)),
                Panel(
                    "Written", "Bps", (Query(f"rate(node_disk_written_bytes_total{{{_ON}}}{_RATE})", _DISK),)
                ),
                Panel(
                    "Busy",
                    "percentunit",
                    (Query(f"rate(node_disk_io_time_seconds_total{{{_ON}}}{_RATE})", _DISK),),
                    maximum=1,
                ),
                Panel(
                    "Operations",
                    "iops",
                    (
                        Query(f"rate(node_disk_reads_completed_total{{{_ON}}}{_RATE})", f"{_DISK} reads"),
                        Query(f"rate(node_disk_writes_completed_total{{{_ON}}}{_RATE})", f"{_DISK} writes"),
                    ),
                ),
                Panel(
                    "How long a write takes",
                    "s",
                    (
                        Query(
                            f"rate(node_disk_write_time_seconds_total{{{_ON}}}{_RATE})"
                            f" / (rate(node_disk_writes_completed_total{{{_ON}}}{_RATE}) > 0)",
                            _DISK,
                        ),
                    ),
                    needs="disks that are written to",
                ),
                Panel(
                    "NFS calls",
                    "reqps",
                    (
                        Query(
                            f"sum by (instance, method) (rate(node_nfs_requests_total{{{_ON}}}{_RATE}))",
                            "{{instance}} {{method}}",
                        ),
                    ),
                    needs="NFS mounts",
                ),
            ),
        ),
        Row(
            "Database",
            (
                Panel("Answers", "bool_yes_no", (Query("mysql_up", "{{instance}}"),), kind="stat", needs=_DB),
                Panel(
                    "Queries",
                    "reqps",
                    (Query(f"rate(mysql_global_status_queries{_RATE})", "{{instance}}"),),
                    needs=_DB,
                ),
                Panel(
                    "Connections",
                    "short",
                    (
                        Query("mysql_global_status_threads_connected", "{{instance}}"),
                        Query("mysql_global_variables_max_connections", "{{instance}} most"),
                    ),
                    needs=_DB,
                ),
                Panel(
                    "Slow queries",
                    "short",
                    (Query("increase(mysql_global_status_slow_queries[1h])", "{{instance}}"),),
                    meaning="Per hour.",
                    needs=_DB,
                ),
                Panel(
                    "Buffer pool that holds data",
                    "percentunit",
                    (
                        Query(
                            'mysql_global_status_buffer_pool_pages{state="data"}'
                            " / on (instance) sum by (instance)"
                            # Old ones are a part of those with data.
                            ' (mysql_global_status_buffer_pool_pages{state!="old"})',
                            "{{instance}}",
                        ),
                    ),
                    maximum=1,
                    needs=_DB,
                ),
            ),
        ),
    ),
    (NODE,),
)
