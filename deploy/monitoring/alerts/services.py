"""The services around: database, probed pages, certificates, and the monitoring itself."""

from deploy.monitoring.alert import Alert, Chapter
from deploy.monitoring.queries import POWERED_DOWN, UNLESS_POWERED_DOWN

_PROMETHEUS = 'instance="mon1",job="prometheus"'
_MON1 = {"instance": "mon1"}
_PROBE = 'instance="mon1",job="blackbox",service="grafana"'


def _spawned(status: str) -> str:
    """The hub's count of servers that were asked for."""
    return (
        f'jupyterhub_server_spawn_duration_seconds_count{{instance="login1",job="portal",status="{status}"}}'
    )


def _spawns(status: str) -> str:
    name = f'jupyterhub_server_spawn_duration_seconds_count{{status="{status}"}}'
    return f"sum by (instance) (increase({name}[30m]))"


SERVICES = Chapter(
    "services",
    "Services and monitoring",
    (
        Alert(
            "TargetDown",
            "warning",
            "The exporter {{ $labels.job }} of {{ $labels.instance }} does not answer",
            f'up{{job!="node"}} == 0 {UNLESS_POWERED_DOWN}',
            5,
            (
                "Prometheus gets no numbers from an exporter: dashboards have gaps, and alerts about its "
                "subject cannot fire."
            ),
            "Whether the service runs and the firewall lets Prometheus in.",
            ("ssh HOST systemctl status UNIT", "curl http://HOST:PORT/metrics | head"),
            {'up{instance="ctl1",job="slurm"}': "0x60"},
            {'up{instance="node1",job="gpu"}': "0x60", POWERED_DOWN: "1x60"},
            {"instance": "ctl1"},
        ),
        Alert(
            "DatabaseDown",
            "critical",
            "The database on {{ $labels.instance }} does not answer",
            "mysql_up == 0",
            2,
            "slurmdbd has no database. Accounting waits in slurmctld until the database is back.",
            "A full disk, then the database's log.",
            (
                "systemctl status mariadb",
                "sudo journalctl --unit mariadb --lines 50",
                "df --human-readable /var/lib/mysql",
            ),
            {'mysql_up{instance="ctl1",job="mysqld"}': "0x60"},
            {'mysql_up{instance="ctl1",job="mysqld"}': "1x60"},
            {"instance": "ctl1"},
        ),
        Alert(
            "DatabaseWithoutMajority",
            "critical",
            "No host of the accounting database has a majority",
            (
                "max(mysql_global_status_wsrep_cluster_status) == 0 "
                "and max(mysql_global_status_wsrep_cluster_size) > 0"
            ),
            2,
            (
                "None of them answers a statement. Accounting waits in slurmctld until two of the three with "
                "a vote reach each other."
            ),
            "Which of the three run, and whether they reach each other.",
            (
                "deploy status INVENTORY",
                "systemctl status mariadb   # on the database's hosts; garb on the arbitrator",
                "deploy cluster INVENTORY   # where all were stopped",
            ),
            {
                'mysql_global_status_wsrep_cluster_status{instance="db1",job="mysqld"}': "0x60",
                'mysql_global_status_wsrep_cluster_size{instance="db1",job="mysqld"}': "1x60",
                'mysql_global_status_wsrep_cluster_status{instance="db2",job="mysqld"}': "0x60",
                'mysql_global_status_wsrep_cluster_size{instance="db2",job="mysqld"}': "1x60",
            },
            {
                'mysql_global_status_wsrep_cluster_status{instance="db1",job="mysqld"}': "0x60",
                'mysql_global_status_wsrep_cluster_size{instance="db1",job="mysqld"}': "1x60",
                'mysql_global_status_wsrep_cluster_status{instance="db2",job="mysqld"}': "1x60",
                'mysql_global_status_wsrep_cluster_size{instance="db2",job="mysqld"}': "2x60",
            },
            {},
        ),
        Alert(
            "DatabaseMemberMissing",
            "warning",
            "{{ $value }} of 3 have a vote on the database that {{ $labels.instance }} serves",
            (
                "mysql_global_status_wsrep_cluster_size > 0 < 3 "
                "and mysql_global_status_wsrep_cluster_status == 1"
            ),
            5,
            "Accounting goes on. When another member is lost, it does not.",
            "Which host is missing: the other one of the database, or the arbitrator.",
            (
                "deploy status INVENTORY",
                "systemctl status mariadb   # on the database's hosts; garb on the arbitrator",
                "sudo journalctl --unit mariadb --lines 50",
            ),
            {
                'mysql_global_status_wsrep_cluster_size{instance="db1",job="mysqld"}': "2x60",
                'mysql_global_status_wsrep_cluster_status{instance="db1",job="mysqld"}': "1x60",
            },
            {
                'mysql_global_status_wsrep_cluster_size{instance="db1",job="mysqld"}': "3x60",
                'mysql_global_status_wsrep_cluster_status{instance="db1",job="mysqld"}': "1x60",
                'mysql_global_status_wsrep_cluster_size{instance="db2",job="mysqld"}': "0x60",
                'mysql_global_status_wsrep_cluster_status{instance="db2",job="mysqld"}': "0x60",
            },
            {"instance": "db1"},
        ),
        Alert(
            "DatabaseMemberNotSynced",
            "warning",
            "The database on {{ $labels.instance }} is not what the other members have",
            "mysql_global_status_wsrep_ready == 0 and mysql_global_status_wsrep_cluster_size > 0",
            15,
            (
                "It takes over nothing until it has all rows. It is copied from another member, or has no "
                "majority."
            ),
            "What it says, and whether it reaches the other members.",
            (
                "sudo mariadb -e \"SHOW STATUS LIKE 'wsrep_%'\"",
                "sudo journalctl --unit mariadb --lines 50",
                "deploy cluster INVENTORY",
            ),
            {
                'mysql_global_status_wsrep_ready{instance="db1",job="mysqld"}': "0x60",
                'mysql_global_status_wsrep_cluster_size{instance="db1",job="mysqld"}': "1x60",
            },
            {
                'mysql_global_status_wsrep_ready{instance="db1",job="mysqld"}': "1x60",
                'mysql_global_status_wsrep_cluster_size{instance="db1",job="mysqld"}': "3x60",
                'mysql_global_status_wsrep_ready{instance="db2",job="mysqld"}': "0x60",
                'mysql_global_status_wsrep_cluster_size{instance="db2",job="mysqld"}': "0x60",
            },
            {"instance": "db1"},
        ),
        Alert(
            "BackupOld",
            "warning",
            "The newest backup on {{ $labels.instance }} is {{ $value | humanizeDuration }} old",
            "(time() - deploy_backup_timestamp_seconds) > deploy_backup_alert_age_seconds",
            5,
            (
                "The timer of the role backup has made no backup for longer than backup_alert_days: what "
                "happened since would be lost with the controller's disk."
            ),
            "What the last one said, and whether the directory is there and has room.",
            (
                "systemctl status deploy-backup.service deploy-backup.timer",
                "sudo journalctl --unit deploy-backup --lines 20",
                "df --human-readable BACKUP_DIRECTORY",
            ),
            {
                'deploy_backup_timestamp_seconds{instance="ctl1",job="node"}': "-172801x60",
                'deploy_backup_alert_age_seconds{instance="ctl1",job="node"}': "172800x60",
            },
            {
                'deploy_backup_timestamp_seconds{instance="ctl1",job="node"}': "0x60",
                'deploy_backup_alert_age_seconds{instance="ctl1",job="node"}': "172800x60",
            },
            {"instance": "ctl1"},
        ),
        Alert(
            "DatabaseConnectionsNearlyUsed",
            "warning",
            (
                "{{ $value | humanizePercentage }} of the database's connections on {{ $labels.instance "
                "}} are used"
            ),
            "mysql_global_status_threads_connected / mysql_global_variables_max_connections > 0.8",
            10,
            "When all connections are used, slurmdbd gets none.",
            "Who holds them.",
            ("sudo mariadb-admin processlist", "sudo mariadb -e 'show variables like \"max_connections\"'"),
            {
                'mysql_global_status_threads_connected{instance="ctl1",job="mysqld"}': "140x60",
                'mysql_global_variables_max_connections{instance="ctl1",job="mysqld"}': "151x60",
            },
            {
                'mysql_global_status_threads_connected{instance="ctl1",job="mysqld"}': "9x60",
                'mysql_global_variables_max_connections{instance="ctl1",job="mysqld"}': "151x60",
            },
            {"instance": "ctl1"},
        ),
        Alert(
            "ProbeFailed",
            "critical",
            "{{ $labels.service }} on {{ $labels.instance }} does not answer as it should",
            "probe_success == 0",
            5,
            "What users open in a browser, or a port that should be open, does not answer.",
            "The service behind it.",
            ("curl --verbose URL",),
            {f"probe_success{{{_PROBE}}}": "0x60"},
            {f"probe_success{{{_PROBE}}}": "1x60"},
            {"instance": "mon1", "service": "grafana"},
        ),
        Alert(
            "PortalServersFail",
            "warning",
            "Most servers that users of the portal on {{ $labels.instance }} ask for do not start",
            f"{_spawns('error')} > 2 and {_spawns('error')} > {_spawns('success')}",
            5,
            (
                "Of the servers that users asked for in the last half hour more failed than started: nodes "
                "do not reach the hub, or what servers are made of is broken there. Who cancels a job does "
                "not count."
            ),
            "What the hub says of each; then the log of one of the jobs, in its user's home directory.",
            (
                "ssh HOST sudo journalctl --unit slurm-portal --since -1h",
                "deploy validate INVENTORY --only portal",
                "less ~/.slurm-portal.log",
            ),
            {_spawned("error"): "0+1x60", _spawned("success"): "0+0x60"},
            {_spawned("error"): "0+1x60", _spawned("success"): "0+2x60"},
            {"instance": "login1"},
        ),
        Alert(
            "RegistryPartDown",
            "warning",
            "The part {{ $labels.part }} of the registry of images on {{ $labels.instance }} does not run",
            "deploy_registry_up == 0",
            10,
            (
                "Images of the site (own), or those of another registry that are cached, cannot be pulled: "
                "jobs with containers end where they import one."
            ),
            "Its log; a full disk; for a cache, whether the other registry and its account are what is set.",
            (
                "ssh HOST systemctl status 'slurm-registry@*'",
                "ssh HOST sudo journalctl --unit 'slurm-registry@PART' --lines 50",
            ),
            {'deploy_registry_up{instance="ctl1",job="node",part="own"}': "0x60"},
            {'deploy_registry_up{instance="ctl1",job="node",part="own"}': "1x60"},
            {"instance": "ctl1", "part": "own"},
        ),
        Alert(
            "RegistryFull",
            "warning",
            "The registry of images on {{ $labels.instance }} is full",
            "deploy_registry_full == 1",
            10,
            "Images take more than slurm_registry_max_gb, with empty caches. Nobody can push; all can pull.",
            "Which images are there that nobody needs; removed tags are freed each day.",
            (
                "ssh HOST sudo du --max-depth 1 --human-readable /srv/registry",
                "skopeo delete docker://HOST:5000/IMAGE:TAG",
                "ssh HOST sudo systemctl start slurm-registry-upkeep",
            ),
            {'deploy_registry_full{instance="ctl1",job="node"}': "1x60"},
            {'deploy_registry_full{instance="ctl1",job="node"}': "0x60"},
            {"instance": "ctl1"},
        ),
        Alert(
            "RegistryNotCollected",
            "warning",
            "Nothing was freed in the registry of images on {{ $labels.instance }} for two days",
            "time() - deploy_registry_collected_timestamp_seconds > 2 * 86400",
            60,
            "What no tag names any more stays, until the registry is full.",
            "Why its service fails.",
            ("ssh HOST systemctl status slurm-registry-upkeep.service slurm-registry-upkeep.timer",),
            {'deploy_registry_collected_timestamp_seconds{instance="ctl1",job="node"}': "-200000x120"},
            {'deploy_registry_collected_timestamp_seconds{instance="ctl1",job="node"}': "0x120"},
            {"instance": "ctl1"},
            after=90,
        ),
        Alert(
            "CertificateExpiresSoon",
            "warning",
            "The certificate of {{ $labels.service }} on {{ $labels.instance }}"
            " ends in {{ $value | humanizeDuration }}",
            "probe_ssl_earliest_cert_expiry - time() < 21 * 86400",
            60,
            "A certificate expires within three weeks. Browsers and clients then refuse the service.",
            "What was meant to renew it.",
            ("openssl s_client -connect HOST:443 </dev/null | openssl x509 -noout -dates",),
            {f"probe_ssl_earliest_cert_expiry{{{_PROBE}}}": "864000x120"},
            {f"probe_ssl_earliest_cert_expiry{{{_PROBE}}}": "8640000x120"},
            {"instance": "mon1", "service": "grafana"},
            after=90,
        ),
        Alert(
            "CertificateExpired",
            "critical",
            "The certificate of {{ $labels.service }} on {{ $labels.instance }} has expired",
            "probe_ssl_earliest_cert_expiry - time() < 0",
            0,
            "Browsers and clients refuse the service.",
            "Renew it, and find out why that did not happen by itself.",
            ("openssl s_client -connect HOST:443 </dev/null | openssl x509 -noout -dates",),
            {f"probe_ssl_earliest_cert_expiry{{{_PROBE}}}": "60x60"},
            {f"probe_ssl_earliest_cert_expiry{{{_PROBE}}}": "8640000x60"},
            {"instance": "mon1", "service": "grafana"},
        ),
        Alert(
            "PrometheusConfigurationRejected",
            "warning",
            "Prometheus on {{ $labels.instance }} rejected its configuration",
            "prometheus_config_last_reload_successful == 0",
            5,
            "Prometheus goes on with the configuration that it had.",
            "What promtool says of it.",
            (
                "sudo promtool check config /etc/prometheus/prometheus.yml",
                "sudo journalctl --unit prometheus --lines 20",
            ),
            {f"prometheus_config_last_reload_successful{{{_PROMETHEUS}}}": "0x60"},
            {f"prometheus_config_last_reload_successful{{{_PROMETHEUS}}}": "1x60"},
            _MON1,
        ),
        Alert(
            "PrometheusRulesFail",
            "warning",
            "Rules of Prometheus on {{ $labels.instance }} cannot be evaluated",
            "sum by (instance) (increase(prometheus_rule_evaluation_failures_total[15m])) > 0",
            0,
            (
                "An alert that cannot be evaluated never fires. Two series where one was expected are "
                "the usual cause."
            ),
            "The rule that is marked on the page Status > Rules.",
            ("sudo journalctl --unit prometheus --lines 20",),
            {f'prometheus_rule_evaluation_failures_total{{{_PROMETHEUS},rule_group="x"}}': "0+1x60"},
            {f'prometheus_rule_evaluation_failures_total{{{_PROMETHEUS},rule_group="x"}}': "4x60"},
            _MON1,
        ),
        Alert(
            "PrometheusNotificationsFail",
            "critical",
            "Prometheus on {{ $labels.instance }} cannot deliver alerts",
            "sum by (instance) (increase(prometheus_notifications_errors_total[15m])) > 0",
            5,
            "Alerts fire, and Alertmanager does not get them.",
            "Whether Alertmanager runs and is reached.",
            ("systemctl status prometheus-alertmanager", "sudo journalctl --unit prometheus --lines 20"),
            {f'prometheus_notifications_errors_total{{{_PROMETHEUS},alertmanager="a"}}': "0+1x60"},
            {f'prometheus_notifications_errors_total{{{_PROMETHEUS},alertmanager="a"}}': "4x60"},
            _MON1,
        ),
        Alert(
            "AlertmanagerNotificationsFail",
            "critical",
            "Alertmanager on {{ $labels.instance }} cannot notify by {{ $labels.integration }}",
            "sum by (instance, integration) (increase(alertmanager_notifications_failed_total[15m])) > 0",
            5,
            "Nobody is told about alerts.",
            "What the receiver answers.",
            ("sudo journalctl --unit prometheus-alertmanager --lines 20",),
            {'alertmanager_notifications_failed_total{instance="mon1",integration="email"}': ("0+1x60")},
            {'alertmanager_notifications_failed_total{instance="mon1",integration="email"}': "4x60"},
            {"instance": "mon1", "integration": "email"},
        ),
        Alert(
            "HostNumbersOfDeployOld",
            "warning",
            "What deploy reports of {{ $labels.instance }} is {{ $value | humanizeDuration }} old",
            'time() - node_textfile_mtime_seconds{file=~".*deploy[.]prom"} > 3600',
            10,
            (
                "The timer that reports munge, slurm.conf and the driver does not run, so their alerts "
                "cannot fire."
            ),
            "Its last lines.",
            ("ssh HOST systemctl status deploy_metrics.timer deploy_metrics.service",),
            {'node_textfile_mtime_seconds{instance="node1",job="node",file="/x/deploy.prom"}': "-4000x60"},
            {'node_textfile_mtime_seconds{instance="node1",job="node",file="/x/deploy.prom"}': "0+60x60"},
            {"instance": "node1"},
        ),
    ),
)
