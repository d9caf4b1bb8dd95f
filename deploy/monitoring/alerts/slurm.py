"""Slurm: its daemons, nodes, queue and scheduler."""

from deploy.monitoring.alert import Alert, Chapter

_JOB = 'instance="ctl1",job="slurm"'
_DBD_QUEUE_MAX = f"slurm_scheduler_dbd_queue_max{{{_JOB}}}"
_THREADS_MAX = f"slurm_scheduler_threads_max{{{_JOB}}}"
_ACCOUNTING = f'slurm_exporter_collect_success{{{_JOB},command="accounting"}}'
_REASON = f'{_JOB},node="node1",reason="fan",user="root"'
_DRAIN = 'instance="ctl1",job="node",node="node1",reason="fan"'
_CTL1 = {"instance": "ctl1"}


def _up(controller: str, role: str) -> str:
    return f'slurm_controller_up{{{_JOB},controller="{controller}",role="{role}"}}'


def _leads(controller: str, role: str) -> str:
    return f'slurm_controller_leads{{{_JOB},controller="{controller}",role="{role}"}}'


def _active(instance: str, service: str) -> str:
    return f'node_systemd_unit_state{{instance="{instance}",name="{service}.service",state="active"}}'


def _budget(what: str) -> str:
    return f'slurm_budget_{what}_hours{{{_JOB},project="laser",resource="gres/gpu"}}'


SLURM = Chapter(
    "slurm",
    "Slurm",
    (
        Alert(
            "SlurmControllerDown",
            "critical",
            "slurmctld on {{ $labels.controller }} does not answer",
            # Of one that hangs `scontrol ping` itself hangs, for MessageTimeout, and is given up.
            "slurm_controller_up == 0 and on (instance) max by (instance) (slurm_controller_up) == 0"
            ' or label_replace(slurm_exporter_collect_success{command="controllers"} == 0'
            ' and on (instance) slurm_exporter_collect_success{command="nodes"} == 0,'
            ' "controller", "$1", "instance", "(.+)")',
            2,
            "slurmctld does not answer. Jobs that run go on; nothing is submitted, started or ended.",
            (
                "Its log. A full disk, a rejected configuration and a database that does not answer are "
                "the usual causes."
            ),
            ("scontrol ping", "systemctl status slurmctld", "sudo tail -50 /var/log/slurm/slurmctld.log"),
            {f'slurm_controller_up{{{_JOB},controller="ctl1",role="primary"}}': "0x60"},
            {f'slurm_controller_up{{{_JOB},controller="ctl1",role="primary"}}': "1x60"},
            {"controller": "ctl1"},
        ),
        Alert(
            "SlurmControllerNotStandingBy",
            "warning",
            "slurmctld on {{ $labels.controller }} does not answer; another controller does",
            "slurm_controller_up == 0 and on (instance) max by (instance) (slurm_controller_up) == 1",
            5,
            (
                "Of several controllers one does not answer. Slurm goes on; where only one is left, nobody "
                "would take over from it."
            ),
            "Its log, and whether `deploy failover` stopped it: the first one stands by never.",
            ("deploy status INVENTORY", "ssh HOST systemctl status slurmctld", "deploy failback INVENTORY"),
            {_up("ctl1", "primary"): "1x60", _up("ctl2", "backup"): "0x60"},
            {_up("ctl1", "primary"): "1x60", _up("ctl2", "backup"): "1x60"},
            {"controller": "ctl2"},
        ),
        Alert(
            "SlurmAnotherControllerLeads",
            "warning",
            "{{ $labels.controller }} leads, and not the first controller",
            'slurm_controller_leads{role="backup"} == 1',
            10,
            "A controller took over, as it does when the first one is lost or after `deploy failover`.",
            "Why the first one does not lead: its host, its log. Started, it leads again.",
            ("deploy status INVENTORY", "ssh HOST systemctl status slurmctld", "deploy failback INVENTORY"),
            {_leads("ctl1", "primary"): "0x60", _leads("ctl2", "backup"): "1x60"},
            {_leads("ctl1", "primary"): "1x60", _leads("ctl2", "backup"): "0x60"},
            {"controller": "ctl2"},
        ),
        Alert(
            "SlurmDaemonNotRunning",
            "critical",
            "{{ $labels.name }} does not run on {{ $labels.instance }}",
            # After a failover the first slurmctld is stopped; started it would lead again. Who answers is
            # known without slurmdbd, too.
            'node_systemd_unit_state{name=~"slurm(dbd|d)[.]service",state="active"} == 0'
            ' or node_systemd_unit_state{name="slurmctld.service",state="active"} == 0'
            " unless on () max(slurm_controller_up) == 1",
            5,
            (
                "slurmctld, slurmdbd or slurmd is installed on the host and does not run. Of slurmctld it is "
                "said where no other controller answers."
            ),
            "Its last lines. `deploy cluster --limit HOST` starts what it manages.",
            ("ssh HOST systemctl status slurmd", "ssh HOST sudo journalctl --unit slurmd --lines 50"),
            {_active("ctl1", "slurmctld"): "0x60", _up("ctl2", "backup"): "0x60"},
            {
                _active("ctl1", "slurmctld"): "0x60",
                _active("node1", "slurmd"): "1x60",
                _up("ctl1", "primary"): "0x60",
                _up("ctl2", "backup"): "1x60",
            },
            {"instance": "ctl1", "name": "slurmctld.service"},
        ),
        Alert(
            "SlurmAccountingDown",
            "critical",
            "slurmdbd does not answer",
            'slurm_exporter_collect_success{command="accounting"} == 0',
            5,
            (
                "slurmdbd does not answer. slurmctld keeps what it should record, and forgets it when "
                "there is too much of it."
            ),
            "slurmdbd's log, then its database.",
            (
                "systemctl status slurmdbd mariadb",
                "sudo tail -50 /var/log/slurm/slurmdbd.log",
                "sdiag | grep DBD",
            ),
            {_ACCOUNTING: "0x60"},
            {_ACCOUNTING: "1x60"},
            _CTL1,
        ),
        Alert(
            "SlurmDbdQueueGrowing",
            "warning",
            "{{ $value }} messages wait for slurmdbd, and there are ever more",
            "slurm_scheduler_dbd_queue > 500 and deriv(slurm_scheduler_dbd_queue[15m]) > 0",
            15,
            "slurmctld sends more to slurmdbd than that takes. The database is slow, or slurmdbd is gone.",
            "Load and free disk of the database's host.",
            ("sdiag | grep DBD", "systemctl status slurmdbd mariadb", "sudo mariadb-admin processlist"),
            {f"slurm_scheduler_dbd_queue{{{_JOB}}}": "400+50x80"},
            {f"slurm_scheduler_dbd_queue{{{_JOB}}}": "600-5x80"},
            _CTL1,
            after=60,
        ),
        Alert(
            "SlurmDbdQueueStuck",
            "warning",
            "{{ $value }} messages wait for slurmdbd, which answers, and none is sent",
            (
                "slurm_scheduler_dbd_queue > 0 and min_over_time(slurm_scheduler_dbd_queue[15m]) > 0 "
                "and resets(slurm_scheduler_dbd_queue[15m]) == 0 "
                'and on (instance) slurm_exporter_collect_success{command="accounting"} == 1'
            ),
            15,
            (
                "slurmctld sends nothing of what it should record, so no job is accounted. With Slurm 26.05 "
                "that is so where a controller took over and did not read its configuration anew."
            ),
            "The log of the controller that leads, and what its program said that is run after a takeover.",
            (
                "sdiag | grep DBD",
                "sudo journalctl --identifier slurmctld-took-over",
                "sudo scontrol reconfigure",
            ),
            {f"slurm_scheduler_dbd_queue{{{_JOB}}}": "3+1x80", _ACCOUNTING: "1x80"},
            {f"slurm_scheduler_dbd_queue{{{_JOB}}}": "600-5x80", _ACCOUNTING: "1x80"},
            _CTL1,
            after=60,
        ),
        Alert(
            "SlurmDbdQueueNearlyFull",
            "critical",
            "The queue for slurmdbd is {{ $value | humanizePercentage }} full; then accounting is lost",
            "slurm_scheduler_dbd_queue / on (instance) slurm_scheduler_dbd_queue_max > 0.8",
            0,
            (
                "slurmctld drops messages when the queue is full (MaxDBDMsgs, by itself 20,000 and four for "
                "each node): accounting of jobs would be lost."
            ),
            "Bring slurmdbd back; the queue then empties by itself.",
            ("sdiag | grep DBD", "sudo systemctl restart slurmdbd", "scontrol show config | grep MaxDBDMsgs"),
            {f"slurm_scheduler_dbd_queue{{{_JOB}}}": "20000x60", _DBD_QUEUE_MAX: "24000x60"},
            {f"slurm_scheduler_dbd_queue{{{_JOB}}}": "9000x60", _DBD_QUEUE_MAX: "24000x60"},
            _CTL1,
        ),
        Alert(
            "SlurmNodeDown",
            "warning",
            "{{ $labels.node }} is down",
            'slurm_node_state{state="down"} == 1',
            10,
            "Slurm has given up on a node: it did not answer, or registered with less than it should have.",
            "The reason, then slurmd on the node.",
            (
                "sinfo --list-reasons",
                "ssh NODE systemctl status slurmd",
                "sudo scontrol update NodeName=NODE State=RESUME",
            ),
            {f'slurm_node_state{{{_JOB},node="node1",state="down"}}': "1x60"},
            {f'slurm_node_state{{{_JOB},node="node1",state="idle"}}': "1x60"},
            {"node": "node1"},
        ),
        Alert(
            "SlurmManyNodesDown",
            "critical",
            "{{ $value | humanizePercentage }} of all nodes are down",
            'sum(slurm_nodes{state="down"}) / sum(slurm_nodes) > 0.1',
            5,
            (
                "More than a tenth of the cluster is down: rather the network, power, munge or the time "
                "than single nodes."
            ),
            "What they have in common: a switch, a rack, the last change.",
            ("sinfo --list-reasons", "deploy status INVENTORY"),
            {f'slurm_nodes{{{_JOB},state="down"}}': "3x60", f'slurm_nodes{{{_JOB},state="idle"}}': "7x60"},
            {f'slurm_nodes{{{_JOB},state="down"}}': "0x60", f'slurm_nodes{{{_JOB},state="idle"}}': "7x60"},
            {},
        ),
        Alert(
            "SlurmNodeNotResponding",
            "warning",
            "slurmd on {{ $labels.node }} does not answer",
            "slurm_node_responding == 0 unless on (node) slurm_node_powered_down == 1",
            5,
            "A node does not answer slurmctld; after SlurmdTimeout it is down and its jobs are requeued.",
            "Whether the host answers at all, then munge and the clock.",
            ("ping NODE", "ssh NODE systemctl status slurmd munge", "ssh NODE chronyc tracking"),
            {f'slurm_node_responding{{{_JOB},node="node1"}}': "0x60"},
            {
                f'slurm_node_responding{{{_JOB},node="node1"}}': "0x60",
                f'slurm_node_powered_down{{{_JOB},node="node1"}}': "1x60",
            },
            {"node": "node1"},
        ),
        Alert(
            "SlurmNodeDrainedLong",
            "warning",
            "{{ $labels.node }} has been drained since a day: {{ $labels.reason }}",
            "time() - slurm_node_reason_timestamp_seconds > 86400",
            15,
            (
                "Somebody, or the node health check, took a node out of service more than a day ago, and "
                "it still is."
            ),
            "The reason. One that begins with `node_health:` goes by itself when the node is well.",
            (
                "sinfo --list-reasons",
                "ssh NODE sudo node_health --show",
                "deploy node repair INVENTORY NODE",
                "sudo scontrol update NodeName=NODE State=RESUME",
            ),
            {f"slurm_node_reason_timestamp_seconds{{{_REASON}}}": "-90000x60"},
            {f"slurm_node_reason_timestamp_seconds{{{_REASON}}}": "0x60"},
            {"node": "node1", "reason": "fan"},
        ),
        Alert(
            "SlurmDrainForgotten",
            "warning",
            "{{ $labels.node }} is drained by a drain of a day ago: {{ $labels.reason }}",
            "max by (node, reason) (time() - deploy_drain_timestamp_seconds > 86400) and on (node, reason) "
            "(time() - slurm_node_reason_timestamp_seconds <= 86400)",
            15,
            (
                "Somebody drained a node with `deploy node drain` more than a day ago. Slurm shows a younger "
                "reason, because something else held the node until lately; the ledger of drains knows."
            ),
            "Who holds it, and whether that is over.",
            ("deploy node list INVENTORY", "deploy node resume INVENTORY NODE --by WHO"),
            {
                f"slurm_node_reason_timestamp_seconds{{{_REASON}}}": "0x60",
                f"deploy_drain_timestamp_seconds{{{_DRAIN}}}": "-90000x60",
            },
            {
                f"slurm_node_reason_timestamp_seconds{{{_REASON}}}": "0x60",
                f"deploy_drain_timestamp_seconds{{{_DRAIN}}}": "0x60",
            },
            {"node": "node1", "reason": "fan"},
        ),
        Alert(
            "SlurmManyNodesDrained",
            "warning",
            "{{ $value | humanizePercentage }} of all nodes are drained",
            'sum(slurm_nodes{state=~"drained|draining"}) / sum(slurm_nodes) > 0.2',
            30,
            "More than a fifth of the cluster takes no new jobs.",
            "Whether the reasons are alike: a check that is wrong itself, or something that all nodes share.",
            ("sinfo --list-reasons",),
            {f'slurm_nodes{{{_JOB},state="drained"}}': "3x80", f'slurm_nodes{{{_JOB},state="idle"}}': "7x80"},
            {f'slurm_nodes{{{_JOB},state="drained"}}': "1x80", f'slurm_nodes{{{_JOB},state="idle"}}': "7x80"},
            {},
            after=60,
        ),
        Alert(
            "SlurmJobsStuckCompleting",
            "warning",
            "A job has been completing for {{ $value | humanizeDuration }}",
            "slurm_jobs_completing_oldest_seconds > 900",
            5,
            (
                "A job ended a quarter of an hour ago and still holds its nodes: processes that cannot "
                "be killed, or an epilog that hangs."
            ),
            "Processes in state D on its nodes; they usually wait for a network file system.",
            ("squeue --states COMPLETING --long", "ssh NODE ps -e -o state,pid,user,wchan:30,args | grep ^D"),
            {f"slurm_jobs_completing_oldest_seconds{{{_JOB}}}": "1000+60x60"},
            {f"slurm_jobs_completing_oldest_seconds{{{_JOB}}}": "40x60"},
            _CTL1,
        ),
        Alert(
            "SlurmJobsPendingWithoutReason",
            "warning",
            (
                "A job of {{ $labels.partition }} has waited for {{ $value | humanizeDuration }}, and Slurm "
                "does not say why"
            ),
            "slurm_jobs_unseen_oldest_seconds > 900",
            5,
            (
                "The scheduler has not looked at a job for a quarter of an hour: it does not get that far, "
                "or does not run."
            ),
            "How long its rounds take and how many jobs it looks at.",
            (
                "sdiag",
                "squeue --states PENDING --Format JobID,Reason,Partition",
                "scontrol show config | grep Sched",
            ),
            {f'slurm_jobs_unseen_oldest_seconds{{{_JOB},partition="batch"}}': "0+60x60"},
            {f'slurm_jobs_unseen_oldest_seconds{{{_JOB},partition="batch"}}': "50x60"},
            {"partition": "batch"},
        ),
        Alert(
            "SlurmSchedulerStalled",
            "critical",
            "The scheduler has not run for a quarter of an hour while jobs wait",
            "increase(slurm_scheduler_main_cycles_total[15m]) == 0 and on (instance)"
            " sum by (instance) (slurm_jobs_pending) > 0",
            5,
            "Jobs wait and slurmctld does not look at them.",
            "Whether slurmctld is busy with something else: many calls, a slow database, a slow disk.",
            ("sdiag", "sudo tail -50 /var/log/slurm/slurmctld.log"),
            {
                f"slurm_scheduler_main_cycles_total{{{_JOB}}}": "70x60",
                f'slurm_jobs_pending{{{_JOB},partition="batch",reason="Priority"}}': "4x60",
            },
            {
                f"slurm_scheduler_main_cycles_total{{{_JOB}}}": "70+1x60",
                f'slurm_jobs_pending{{{_JOB},partition="batch",reason="Priority"}}': "4x60",
            },
            _CTL1,
            after=45,
        ),
        Alert(
            "SlurmSchedulerSlow",
            "warning",
            "A round of the main scheduler takes {{ $value | humanizeDuration }}",
            "slurm_scheduler_main_last_cycle_seconds > 5",
            15,
            "While the scheduler looks at the queue it holds locks, so every command of every user waits.",
            (
                "How many jobs wait, and SchedulerParameters: default_queue_depth, sched_max_job_start, "
                "bf_max_job_test."
            ),
            ("sdiag", "squeue --states PENDING --noheader | wc -l"),
            {f"slurm_scheduler_main_last_cycle_seconds{{{_JOB}}}": "8x60"},
            {f"slurm_scheduler_main_last_cycle_seconds{{{_JOB}}}": "0.2x60"},
            _CTL1,
        ),
        Alert(
            "SlurmBackfillSlow",
            "warning",
            "A round of the backfill scheduler takes {{ $value | humanizeDuration }}",
            "slurm_scheduler_backfill_last_cycle_seconds > 120",
            30,
            "Backfill takes minutes, so small jobs start late although there is room for them.",
            "bf_interval, bf_max_job_test, bf_resolution and bf_window in SchedulerParameters.",
            ("sdiag", "scontrol show config | grep SchedulerParameters"),
            {f"slurm_scheduler_backfill_last_cycle_seconds{{{_JOB}}}": "300x80"},
            {f"slurm_scheduler_backfill_last_cycle_seconds{{{_JOB}}}": "3x80"},
            _CTL1,
            after=60,
        ),
        Alert(
            "SlurmControllerBusy",
            "warning",
            "{{ $value | humanizePercentage }} of slurmctld's threads for calls are busy",
            "slurm_scheduler_threads / on (instance) slurm_scheduler_threads_max > 0.6",
            5,
            (
                "slurmctld is near the number of calls that it answers at a time; more have to wait. That is "
                "256 before Slurm 24.11, 64 with it, then two for each CPU, and at most 32 from 25.11 on."
            ),
            "Who calls so often: `sdiag` names types and users. Loops around squeue are the usual cause.",
            ("sdiag",),
            {f"slurm_scheduler_threads{{{_JOB}}}": "40x60", _THREADS_MAX: "64x60"},
            {f"slurm_scheduler_threads{{{_JOB}}}": "40x60", _THREADS_MAX: "256x60"},
            _CTL1,
        ),
        Alert(
            "SlurmUserFloodsController",
            "warning",
            "{{ $labels.user }} makes {{ $value | humanize }} calls to slurmctld a second",
            'rate(slurm_rpc_user_requests_total{user!~"root|slurm"}[10m]) > 50',
            10,
            "One user's programs ask slurmctld so often that others may have to wait.",
            "What they run on the login nodes; `squeue --me` in a loop is what it usually is.",
            ("sdiag", "ssh LOGIN ps -u USER -o etime,args"),
            {f'slurm_rpc_user_requests_total{{{_JOB},user="bob"}}': "0+6000x60"},
            {f'slurm_rpc_user_requests_total{{{_JOB},user="bob"}}': "0+60x60"},
            {"user": "bob"},
        ),
        Alert(
            "SlurmAgentQueueGrowing",
            "warning",
            "{{ $value }} messages wait to be sent to nodes",
            "slurm_scheduler_agent_queue > 100",
            10,
            "slurmctld cannot deliver its messages, as when many nodes do not answer.",
            "Which nodes do not respond, and the network to them.",
            ("sdiag | grep -i agent", "sinfo --responding", "sinfo --dead"),
            {f"slurm_scheduler_agent_queue{{{_JOB}}}": "300x60"},
            {f"slurm_scheduler_agent_queue{{{_JOB}}}": "2x60"},
            _CTL1,
        ),
        Alert(
            "SlurmJobsLostByNodes",
            "warning",
            (
                "{{ $value | humanize }} jobs of {{ $labels.partition }} were lost within an hour "
                "because their nodes failed, and do not start again"
            ),
            'increase(slurm_jobs_ended_total{state="node_fail"}[1h]) >= 3',
            0,
            (
                "Nodes failed under jobs that Slurm does not start again: those of salloc and srun, and with "
                "--no-requeue. Others wait once more, and do not count."
            ),
            "Whether it was one node or many, and one user's jobs or anybody's.",
            (
                "sacct --allusers --state NODE_FAIL --starttime now-2hours --format JobID,User,NodeList,End",
                "sinfo --list-reasons",
            ),
            {f'slurm_jobs_ended_total{{{_JOB},partition="batch",state="node_fail"}}': "0x10 5x60"},
            {f'slurm_jobs_ended_total{{{_JOB},partition="batch",state="node_fail"}}': "9x80"},
            {"partition": "batch"},
        ),
        Alert(
            "SlurmPartitionNotUp",
            "warning",
            "The partition {{ $labels.partition }} is not up",
            'slurm_partition_state{state="up"} == 0',
            30,
            (
                "A partition takes no jobs or starts none. Somebody has set it so, perhaps for "
                "maintenance that is over."
            ),
            "Its state, and who is asked about it.",
            ("scontrol show partition PARTITION", "sudo scontrol update PartitionName=PARTITION State=UP"),
            {f'slurm_partition_state{{{_JOB},partition="batch",state="up"}}': "0x80"},
            {f'slurm_partition_state{{{_JOB},partition="batch",state="up"}}': "1x80"},
            {"partition": "batch"},
            after=60,
        ),
        Alert(
            "SlurmExporterFails",
            "warning",
            "The Slurm exporter gets no answer to {{ $labels.command }}",
            'slurm_exporter_collect_success{command!="accounting"} == 0',
            10,
            (
                "A command of the exporter fails or takes too long: what it tells is missing from "
                "dashboards and alerts."
            ),
            (
                "The exporter's journal has the reason. `PrivateData` hides things from it; see "
                "roles/slurm_metrics."
            ),
            ("sudo journalctl --unit slurm_metrics --lines 20", "sudo -u slurm_metrics squeue"),
            {f'slurm_exporter_collect_success{{{_JOB},command="jobs"}}': "0x60"},
            {f'slurm_exporter_collect_success{{{_JOB},command="jobs"}}': "1x60"},
            {"command": "jobs"},
        ),
        Alert(
            "SlurmNumbersOld",
            "warning",
            "What {{ $labels.command }} said is {{ $value | humanizeDuration }} old",
            "time() - slurm_exporter_collect_timestamp_seconds > 1200"
            " and on (instance, command) slurm_exporter_collect_success == 1",
            5,
            "The exporter serves answers that are more than twenty minutes old.",
            "How long a round takes, and whether slurmctld answers slowly.",
            ("sudo journalctl --unit slurm_metrics --lines 20", "sdiag"),
            {
                f'slurm_exporter_collect_timestamp_seconds{{{_JOB},command="jobs"}}': "0x60",
                f'slurm_exporter_collect_success{{{_JOB},command="jobs"}}': "1x60",
            },
            {
                f'slurm_exporter_collect_timestamp_seconds{{{_JOB},command="jobs"}}': "0x60",
                f'slurm_exporter_collect_success{{{_JOB},command="jobs"}}': "0x60",
            },
            {"command": "jobs"},
        ),
        Alert(
            "MungeNotRunning",
            "critical",
            "munge does not run on {{ $labels.instance }}",
            'node_systemd_unit_state{name="munge.service",state="active"} == 0',
            2,
            "Without munge nothing of Slurm works on the host.",
            "Its last lines. A key with wrong rights or owner is refused.",
            ("ssh HOST systemctl status munge", "ssh HOST sudo ls -l /etc/munge/munge.key"),
            {'node_systemd_unit_state{instance="node1",name="munge.service",state="active"}': "0x60"},
            {'node_systemd_unit_state{instance="node1",name="munge.service",state="active"}': "1x60"},
            {"instance": "node1"},
        ),
        Alert(
            "MungeFails",
            "critical",
            "munge on {{ $labels.instance }} cannot read its own message",
            "deploy_munge_success == 0",
            5,
            "munge runs and does not work: its socket, its key or the clock.",
            "What munge itself says; then whether the key is that of the controller.",
            (
                "ssh HOST 'munge -n | unmunge'",
                "munge -n | ssh HOST unmunge",
                "ssh HOST sudo sha256sum /etc/munge/munge.key",
            ),
            {'deploy_munge_success{instance="node1",job="node"}': "0x60"},
            {'deploy_munge_success{instance="node1",job="node"}': "1x60"},
            {"instance": "node1"},
        ),
        Alert(
            "SlurmBudgetNearlyUsed",
            "info",
            "{{ $labels.project }} used {{ $value | humanizePercentage }} of its {{ $labels.resource }}",
            "slurm_budget_used_hours / on (instance, project, resource) slurm_budget_granted_hours > 0.9",
            15,
            (
                "A project has used nine tenths of its budget of this period. At its end jobs wait, or go on "
                "in a lower QOS, as the inventory says."
            ),
            (
                "Who used it, and what runs: its managers see the same. `hours` of the budget, in "
                "slurm_accounts_accounts, grants more."
            ),
            (
                "show-budget PROJECT",
                "squeue --account=PROJECT",
                "deploy cluster INVENTORY --tags slurm_accounts",
            ),
            {_budget("used"): "95x60", _budget("granted"): "100x60"},
            {_budget("used"): "50x60", _budget("granted"): "100x60"},
            {"instance": "ctl1", "project": "laser", "resource": "gres/gpu"},
        ),
        Alert(
            "SlurmConfigurationDiffers",
            "warning",
            "{{ $value }} different versions of slurm.conf are in use",
            "count(count by (sha256) (deploy_slurm_configuration_info)) > 1",
            15,
            "Nodes work with another slurm.conf than the controller: they were unreachable when it changed.",
            "Which hosts have which; `scontrol reconfigure` sends it once more.",
            (
                "sudo scontrol reconfigure",
                "deploy cluster INVENTORY",
                "ssh NODE sha256sum /run/slurm/conf/slurm.conf",
            ),
            {
                'deploy_slurm_configuration_info{instance="ctl1",sha256="aa"}': "1x60",
                'deploy_slurm_configuration_info{instance="node1",sha256="bb"}': "1x60",
            },
            {
                'deploy_slurm_configuration_info{instance="ctl1",sha256="aa"}': "1x60",
                'deploy_slurm_configuration_info{instance="node1",sha256="aa"}': "1x60",
            },
            {},
        ),
    ),
)
