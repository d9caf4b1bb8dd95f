"""Machines: whether they answer, their disks, memory, clocks and services."""

from deploy.monitoring.alert import Alert, Chapter
from deploy.monitoring.queries import LOCAL, POWERED_DOWN, UNLESS_POWERED_DOWN

# What users mount in their homes by FUSE says nothing to others; of FUSE it is GlusterFS that sites mount.
_SHARED = "nfs.*|lustre|ceph|beegfs.*|gpfs|fuse[.]glusterfs"
_REMOTE = f'fstype=~"{_SHARED}"'
_OWN = f'fstype!~"tmpfs|ramfs|overlay|squashfs|iso9660|fuse.*|{_SHARED}"'
_DISK = '{instance="node1",job="node",mountpoint="/",device="/dev/sda1",fstype="ext4"}'
_SACKD = 'instance="login1",name="sackd.service",state="activating",type="notify"'
_NFS = '{instance="node1",job="node",mountpoint="/home",device="ctl1:/home",fstype="nfs4"}'
_STARTING = 'node_systemd_unit_state{state="activating",type!="oneshot"}'
_HOST = '{instance="node1",job="node"}'
_PORT = '{instance="node1",device="mlx5_0",port="1"}'
_NODE1 = {"instance": "node1"}
_OF_SHARED = "by (device, fstype, mountpoint)"
"""Of what is shared: one alert, and not one of each host."""
_WHERE = "{{ $labels.mountpoint }} on {{ or $labels.instance $labels.device }}"


def _free(filesystems: str) -> str:
    return f"node_filesystem_avail_bytes{{{filesystems}}} / node_filesystem_size_bytes{{{filesystems}}}"


def _left_tomorrow(filesystems: str) -> str:
    return f"predict_linear(node_filesystem_avail_bytes{{{filesystems}}}[3h], 86400)"


HOSTS = Chapter(
    "hosts",
    "Hosts",
    (
        Alert(
            "HostDown",
            "critical",
            "{{ $labels.instance }} does not answer",
            f'up{{job="node"}} == 0 {UNLESS_POWERED_DOWN}',
            3,
            (
                "The node exporter of a host does not answer: the host is off, cut off from the network, "
                "or only the exporter is gone. Nodes that Slurm's power saving has switched off do not count."
            ),
            "Whether Slurm sees the node, too. If it does, the exporter alone is gone.",
            ("sinfo --Node --long", "ping HOST", "ssh HOST systemctl status prometheus-node-exporter"),
            {f"up{_HOST}": "0x60"},
            {f"up{_HOST}": "0x60", POWERED_DOWN: "1x60"},
            _NODE1,
        ),
        Alert(
            "HostRestarted",
            "info",
            "{{ $labels.instance }} started {{ $value | humanizeDuration }} ago",
            "time() - node_boot_time_seconds < 600",
            0,
            (
                "A host started within the last ten minutes. Nobody need act when somebody rebooted it; "
                "otherwise it lost power or panicked."
            ),
            "The end of the journal before the start, and who rebooted.",
            (
                "ssh HOST sudo journalctl --list-boots | tail -5",
                "ssh HOST sudo journalctl --boot -1 --lines 50",
            ),
            {f"node_boot_time_seconds{_HOST}": "1500x60"},
            {f"node_boot_time_seconds{_HOST}": "-90000x60"},
            _NODE1,
        ),
        Alert(
            "DiskFull",
            "critical",
            _WHERE + " has {{ $value | humanizePercentage }} left",
            f"{_free(_OWN)} < 0.05 or min {_OF_SHARED} ({_free(_REMOTE)}) < 0.05",
            5,
            (
                "Less than 5 % of a file system is free. On the controller Slurm can then lose its "
                "queue; on a node jobs fail."
            ),
            "What is large there. Job scratch, logs, container images and cores are the usual ones.",
            (
                "ssh HOST df --human-readable",
                "ssh HOST sudo du --one-file-system --max-depth 2 --human-readable / | sort -h",
            ),
            {f"node_filesystem_avail_bytes{_DISK}": "4x60", f"node_filesystem_size_bytes{_DISK}": "100x60"},
            {f"node_filesystem_avail_bytes{_DISK}": "40x60", f"node_filesystem_size_bytes{_DISK}": "100x60"},
            {"instance": "node1", "mountpoint": "/"},
        ),
        Alert(
            "DiskFillingUp",
            "warning",
            _WHERE + " will be full within a day",
            # A host that has just booted knows a few minutes of what is shared, and may think the worst.
            f"{_left_tomorrow(_OWN)} < 0 and {_free(_OWN)} < 0.3"
            f" or max {_OF_SHARED} ({_left_tomorrow(_REMOTE)}) < 0"
            f" and max {_OF_SHARED} ({_free(_REMOTE)}) < 0.3",
            30,
            "As fast as the last three hours, the file system is full within 24 hours.",
            "Which directory grows, and whose job writes there.",
            (
                "ssh HOST sudo du --one-file-system --max-depth 2 --human-readable / | sort -h",
                "squeue --nodelist HOST",
            ),
            {
                f"node_filesystem_avail_bytes{_DISK}": "29000-50x120",
                f"node_filesystem_size_bytes{_DISK}": "100000x120",
            },
            {
                f"node_filesystem_avail_bytes{_DISK}": "29000x120",
                f"node_filesystem_size_bytes{_DISK}": "100000x120",
            },
            {"instance": "node1", "mountpoint": "/"},
            after=60,
        ),
        Alert(
            "InodesFull",
            "warning",
            (
                "{{ $labels.mountpoint }} on {{ $labels.instance }} has {{ $value | humanizePercentage "
                "}} of its inodes left"
            ),
            f"node_filesystem_files_free{{{LOCAL}}} / node_filesystem_files{{{LOCAL}}} < 0.05",
            10,
            "There is room, but hardly a file can be created any more: somebody has millions of small files.",
            "Which directory holds them.",
            (
                "ssh HOST df --inodes",
                "ssh HOST sudo du --inodes --one-file-system --max-depth 3 / | sort -n | tail",
            ),
            {f"node_filesystem_files_free{_DISK}": "4x60", f"node_filesystem_files{_DISK}": "100x60"},
            {f"node_filesystem_files_free{_DISK}": "40x60", f"node_filesystem_files{_DISK}": "100x60"},
            {"instance": "node1", "mountpoint": "/"},
        ),
        Alert(
            "FilesystemReadOnly",
            "critical",
            "{{ $labels.mountpoint }} on {{ $labels.instance }} has become read-only",
            f"node_filesystem_readonly{{{LOCAL}}} == 1"
            " and on (instance, device, mountpoint) filesystem:writable:once",
            2,
            (
                "A local file system was writable and no longer is: the kernel makes it read-only after an "
                "error of the disk. What was mounted read-only from the beginning does not count."
            ),
            "The kernel's messages, then the disk's own record of errors.",
            ("ssh HOST sudo dmesg --level err,warn", "ssh HOST sudo smartctl --all /dev/DISK"),
            {f"node_filesystem_readonly{_DISK}": "0x5 1x60", f"up{_HOST}": "1x60"},
            {f"node_filesystem_readonly{_DISK}": "1x60"},
            {"instance": "node1", "mountpoint": "/"},
            repair="mount",
        ),
        Alert(
            "NetworkMountStale",
            "critical",
            "{{ $labels.mountpoint }} on {{ $labels.instance }} does not answer",
            # Older exporters do not tell the error.
            f'node_filesystem_device_error{{{_REMOTE},device_error!="permission denied"}} == 1',
            5,
            (
                "A network file system is mounted and does not answer: its server is gone, or its export "
                "was made anew (stale handle)."
            ),
            "Whether the server answers other clients. One client alone is fixed by mounting again.",
            (
                "ssh HOST timeout 5 ls MOUNTPOINT",
                "ssh HOST systemctl list-units --type mount",
                "ssh SERVER sudo exportfs -v",
            ),
            {f"node_filesystem_device_error{_NFS}": "1x60"},
            {f"node_filesystem_device_error{_NFS}": "0x60"},
            {"instance": "node1", "mountpoint": "/home"},
        ),
        Alert(
            "MemoryLow",
            "warning",
            "{{ $labels.instance }} has {{ $value | humanizePercentage }} of its memory available",
            "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes < 0.05",
            15,
            (
                "Hardly any memory is left. Jobs are held to what they asked for, so what takes it is "
                "usually outside of jobs."
            ),
            "Which processes are large, and whether they belong to a job.",
            ("ssh HOST ps -e -o rss,user,cgroup,comm --sort -rss | head", "squeue --nodelist HOST"),
            {
                f"node_memory_MemAvailable_bytes{_HOST}": "4x60",
                f"node_memory_MemTotal_bytes{_HOST}": "100x60",
            },
            {
                f"node_memory_MemAvailable_bytes{_HOST}": "40x60",
                f"node_memory_MemTotal_bytes{_HOST}": "100x60",
            },
            _NODE1,
        ),
        Alert(
            "MemoryErrors",
            "critical",
            "{{ $labels.instance }} had memory errors that could not be corrected",
            "increase(node_edac_uncorrectable_errors_total[1h]) > 0",
            0,
            "A memory module returned wrong data and could not correct it. Results of jobs may be wrong.",
            "Which module, in the machine's own log; drain the node and have it replaced.",
            (
                "sudo scontrol update NodeName=HOST State=DRAIN Reason='memory errors'",
                "ssh HOST sudo ras-mc-ctl --errors",
            ),
            {'node_edac_uncorrectable_errors_total{instance="node1",controller="0"}': "0x20 1x60"},
            {'node_edac_uncorrectable_errors_total{instance="node1",controller="0"}': "3x80"},
            _NODE1,
            repair="node",
        ),
        Alert(
            "CpuThrottled",
            "warning",
            "CPUs of {{ $labels.instance }} are throttled by heat",
            "sum by (instance) (increase(node_cpu_package_throttles_total[15m])) > 100",
            15,
            "The CPUs slow down because they are too hot: fans, filters, or the air in front of the rack.",
            "Temperatures of the neighbours, then the fans of this machine.",
            ("ssh HOST sensors", "ssh HOST sudo ipmitool sdr type fan"),
            {'node_cpu_package_throttles_total{instance="node1",package="0"}': "0+60x80"},
            {'node_cpu_package_throttles_total{instance="node1",package="0"}': "7x80"},
            _NODE1,
            after=60,
        ),
        Alert(
            "NetworkErrors",
            "warning",
            (
                "{{ $labels.device }} of {{ $labels.instance }} drops {{ $value | humanizePercentage }} "
                "of its packets with errors"
            ),
            (
                "rate(node_network_receive_errs_total[10m]) / "
                "rate(node_network_receive_packets_total[10m]) > 0.001"
            ),
            15,
            "More than one packet in a thousand arrives broken: a cable, a transceiver or a port.",
            "The counters of both ends of the cable.",
            (
                "ssh HOST ip -statistics link show DEVICE",
                "ssh HOST sudo ethtool --statistics DEVICE | grep -i err",
            ),
            {
                'node_network_receive_errs_total{instance="node1",device="eth0"}': "0+60x80",
                'node_network_receive_packets_total{instance="node1",device="eth0"}': "0+6000x80",
            },
            {
                'node_network_receive_errs_total{instance="node1",device="eth0"}': "5x80",
                'node_network_receive_packets_total{instance="node1",device="eth0"}': "0+6000x80",
            },
            {"instance": "node1", "device": "eth0"},
            after=60,
        ),
        Alert(
            "InfinibandPortDown",
            "critical",
            "{{ $labels.device }} port {{ $labels.port }} of {{ $labels.instance }} is not active",
            "node_infiniband_state_id != 4 and on (instance, device, port) infiniband:active:once",
            5,
            (
                "An InfiniBand port was ACTIVE and no longer is. Jobs over several nodes fail or become "
                "slow. A port that never was does not count: nobody may have connected it."
            ),
            "Cable and switch port; whether a subnet manager runs when many ports are affected.",
            ("ssh HOST sudo ibstat", "ssh HOST sudo ibdiagnet"),
            {f"node_infiniband_state_id{_PORT}": "4x5 1x60", f"up{_HOST}": "1x60"},
            {f"node_infiniband_state_id{_PORT}": "1x60"},
            {"instance": "node1", "device": "mlx5_0"},
        ),
        Alert(
            "ClockOff",
            "critical",
            "The clock of {{ $labels.instance }} is {{ $value | humanizeDuration }} off",
            'abs(node_time_seconds{job="node"} - timestamp(node_time_seconds{job="node"})) > 2',
            5,
            (
                "The clock differs from Prometheus's by more than two seconds. From five minutes on "
                "munge refuses every message."
            ),
            "Whether many hosts differ, which means that Prometheus's own clock is wrong.",
            ("ssh HOST chronyc tracking", "ssh HOST chronyc sources"),
            {f"node_time_seconds{_HOST}": "10+60x60"},
            {f"node_time_seconds{_HOST}": "0+60x60"},
            _NODE1,
        ),
        Alert(
            "ClockNotSynchronized",
            "warning",
            "No time server sets the clock of {{ $labels.instance }}",
            "node_timex_sync_status == 0 and node_timex_maxerror_seconds >= 16",
            15,
            (
                "The kernel has not heard of a time server for so long that it does not trust its clock "
                "any more."
            ),
            "Whether chrony runs and reaches its servers.",
            ("ssh HOST systemctl status chrony", "ssh HOST chronyc sources"),
            {f"node_timex_sync_status{_HOST}": "0x60", f"node_timex_maxerror_seconds{_HOST}": "16x60"},
            {f"node_timex_sync_status{_HOST}": "1x60", f"node_timex_maxerror_seconds{_HOST}": "0.1x60"},
            _NODE1,
        ),
        Alert(
            "UnitFailed",
            "warning",
            "{{ $labels.name }} has failed on {{ $labels.instance }}",
            # user@UID: whose it is may kill it.
            'node_systemd_unit_state{state="failed",name!~"user@.*"} == 1',
            5,
            "systemd gave up on a service.",
            (
                "Its last lines. `deploy status` says what else is wrong on the host, and `deploy "
                "cluster` starts what it manages."
            ),
            ("ssh HOST systemctl status UNIT", "ssh HOST sudo journalctl --unit UNIT --lines 50"),
            {'node_systemd_unit_state{instance="node1",name="chrony.service",state="failed"}': "1x60"},
            {'node_systemd_unit_state{instance="node1",name="chrony.service",state="failed"}': "0x60"},
            {"instance": "node1", "name": "chrony.service"},
        ),
        Alert(
            "UnitDiesAgainAndAgain",
            "warning",
            "{{ $labels.name }} does not come up on {{ $labels.instance }}",
            # Between two deaths it may pass for active a moment; one that started slowly at boot is up.
            f"avg_over_time({_STARTING}[15m]) > 0.25 and max_over_time({_STARTING}[3m]) == 1"
            f" and {_STARTING} offset 15m",
            15,
            (
                "A service dies, and systemd starts it again and again, as deploy's units want it; such a "
                "service is never called failed."
            ),
            "Its last lines. `deploy cluster` starts what it manages, and says why it does not run.",
            ("ssh HOST systemctl status UNIT", "ssh HOST sudo journalctl --unit UNIT --lines 50"),
            {f"node_systemd_unit_state{{{_SACKD}}}": "1 1 1 0 1 1 0 1 1 1 1 0 1 1 1 1 0 1x40"},
            {f"node_systemd_unit_state{{{_SACKD}}}": "1x10 0x50"},
            {"instance": "login1", "name": "sackd.service"},
        ),
    ),
)
