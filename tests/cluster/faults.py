"""Faults of a cluster: how to make and fix each, and which check finds it.

docs/validation.md has them as a table. A script runs as root in a shell on the host before the colon.
Faults of a group are there at once. GROUPS are of every cluster; other clusters have more.
"""

from dataclasses import dataclass

_CONF = "/etc/slurm"
_CACHE = "/var/spool/slurmd/conf-cache"
_RECONFIGURE = "scontrol reconfigure; sleep 2"
_STARTED = "until scontrol ping | grep -q 'is UP'; do sleep 0.5; done"
"""A controller that was started answers."""
_REGISTERED = (
    "until scontrol show node $(hostname) | grep State= | grep -vqE 'NOT_RESPONDING|[*]'; do sleep 0.5; done"
)
"""A node that was started is known to the controller."""
_ACCOUNTS = "until sacctmgr -n show cluster >/dev/null 2>&1; do sleep 0.5; done"
"""A database daemon that was started answers."""
_APART = (
    r"s/^NodeName=node\[1-2\] NodeAddr=([0-9.]*)\[([0-9]+)-([0-9]+)\] (.*)$"
    r"/NodeName=node1 NodeAddr=\1\2 \4\nNodeName=node2 NodeAddr=\1\3 \4/"
)
"""Gives each of the two nodes a line of its own."""
_SLOW_ECHO = """
import socket, threading
echo = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
while True:
    packet, sender = echo.recvfrom(65536)
    message = packet[(packet[0] & 15) * 4:]
    if message[0] == 8:
        # The kind is the high byte of the first word of the sum (RFC 1071).
        total = int.from_bytes(message[2:4], "big") + 0x0800
        answer = bytes(2) + ((total & 0xFFFF) + (total >> 16)).to_bytes(2, "big") + message[4:]
        threading.Timer(0.05, echo.sendto, (answer, sender)).start()
"""
"""Answers echo requests instead of the kernel, 50 ms late: kernels without netem cannot delay packets."""
_LOSSY = "INPUT --match statistic --mode random --probability 0.3 --jump DROP"


@dataclass(frozen=True)
class Fault:
    """A fault: ``check`` says of each of ``where`` something with ``says`` in it."""

    what: str
    check: str
    where: tuple[str, ...]
    says: str
    breaks: tuple[str, ...]
    fixes: tuple[str, ...]


def _on_controller(file: str, edit: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Edits one of the controller's files and has Slurm take it; and the way back."""
    path = f"{_CONF}/{file}"
    return (
        (f"ctl1: cp -p {path} {path}.good; {edit} {path}; {_RECONFIGURE}",),
        (f"ctl1: mv {path}.good {path}; {_RECONFIGURE}",),
    )


HOSTS = (
    Fault(
        "a clock is a minute ahead (its `date` says so: containers share one clock)",
        "clock",
        ("node1",),
        "ahead of this machine's",
        (
            "node1: mv /usr/bin/date /usr/bin/date.good",
            'node1: printf \'#!/bin/sh\\nexec date.good --date="+60 seconds" "$@"\\n\' > /usr/bin/date',
            "node1: chmod 755 /usr/bin/date",
        ),
        ("node1: mv /usr/bin/date.good /usr/bin/date",),
    ),
    Fault(
        "a host knows another by a wrong address",
        "names",
        ("node2",),
        "node1 is 192.0.2.1",
        (
            "node2: cp /etc/hosts /root/hosts",
            "node2: sed 's/^[0-9.]*\\(.*node1\\)/192.0.2.1\\1/' /root/hosts > /etc/hosts",
        ),
        ("node2: cat /root/hosts > /etc/hosts; rm /root/hosts",),
    ),
    Fault(
        "/tmp is full",
        "space",
        ("node1",),
        "/tmp has 0.0 % of its space free",
        (
            "node1: mount -t tmpfs -o size=1m none /tmp",
            "node1: dd if=/dev/zero of=/tmp/full bs=1k 2>/dev/null || true",
        ),
        ("node1: umount /tmp",),
    ),
    Fault(
        "a shared file system is not mounted on a node",
        "mounts",
        ("node2",),
        "not mounted: /scratch",
        tuple(
            f"{host}: mkdir -p /scratch; mount -t tmpfs none /scratch" for host in ("ctl1", "login1", "node1")
        ),
        tuple(f"{host}: umount /scratch; rmdir /scratch" for host in ("ctl1", "login1", "node1")),
    ),
    Fault(
        "a SPANK plugin is missing on a node",
        "plugins",
        ("node1",),
        "which is not there",
        (
            *(f"{host}: touch /opt/spank.so" for host in ("ctl1", "login1", "node2")),
            f"ctl1: cp -p {_CONF}/plugstack.conf /root/",
            f"ctl1: echo 'optional /opt/spank.so' >> {_CONF}/plugstack.conf",
            f"ctl1: {_RECONFIGURE}",
            "login1: systemctl restart sackd; sleep 1",
        ),
        (
            f"ctl1: mv /root/plugstack.conf {_CONF}/plugstack.conf; {_RECONFIGURE}",
            "login1: systemctl restart sackd; sleep 1",
            *(f"{host}: rm /opt/spank.so" for host in ("ctl1", "login1", "node2")),
        ),
    ),
    Fault(
        "a node has another slurm.conf",
        "configuration",
        ("node2",),
        "slurm.conf in /run/slurm/conf is not the controller's",
        (f"node2: cp -p {_CACHE}/slurm.conf /root/; echo '# mine' >> {_CACHE}/slurm.conf",),
        (f"node2: mv /root/slurm.conf {_CACHE}/slurm.conf",),
    ),
    Fault(
        "the gate of a node is shut for admins",
        "admin-logins",
        ("node2",),
        "chief would be refused: Permission denied",
        (
            "node2: useradd --no-create-home --groups sudo chief; cp -p /etc/pam.d/sshd /root/",
            "node2: sed -i '/^account.*ingroup/d' /etc/pam.d/sshd",
        ),
        ("node2: mv /root/sshd /etc/pam.d/sshd; userdel chief",),
    ),
    Fault(
        "a GPU's device is missing",
        "hardware",
        ("node2",),
        "gpus",
        ("node2: rm /dev/nvidia1",),
        ("node2: mknod -m 666 /dev/nvidia1 c 195 1",),
    ),
    Fault(
        "a node is drained",
        "node-state",
        ("node1",),
        "bad disk",
        ("ctl1: scontrol update nodename=node1 state=drain reason='bad disk'",),
        ("ctl1: scontrol update nodename=node1 state=resume",),
    ),
    Fault(
        "a partition is missing",
        "partitions",
        ("batch",),
        "there is no partition batch",
        ("ctl1: scontrol delete partitionname=batch",),
        (f"ctl1: {_RECONFIGURE}",),
    ),
    Fault(
        "a QOS is missing",
        "qos",
        ("ghost",),
        "there is no QOS ghost",
        (),
        (),
    ),
    Fault(
        "a user may no longer charge an account",
        "associations",
        ("bob",),
        "bob may not charge research",
        ("ctl1: sacctmgr --immediate --quiet delete user bob account=research",),
        ("ctl1: sacctmgr --immediate --quiet add user bob account=research",),
    ),
    Fault(
        "a third of the packets to a node are lost",
        "packets",
        ("node2",),
        "packets are lost",
        (f"network: iptables --append {_LOSSY} node2",),
        (f"network: iptables --delete {_LOSSY} node2",),
    ),
    Fault(
        "a user has another uid on a node",
        "accounts",
        ("node1",),
        "bob has the uid 3002 instead of 2002",
        ("node1: sed -i s/^bob:x:2002:/bob:x:3002:/ /etc/passwd",),
        ("node1: sed -i s/^bob:x:3002:/bob:x:2002:/ /etc/passwd",),
    ),
    Fault(
        "a login shell ends at once on a node",
        "login-shell",
        ("node2",),
        "ends with exit code 3 before its command",
        ("node2: echo exit 3 > /etc/profile.d/zz-fault.sh",),
        ("node2: rm /etc/profile.d/zz-fault.sh",),
    ),
    Fault(
        "/tmp has lost its sticky bit",
        "shared-directories",
        ("login1",),
        "/tmp has the mode 0777 instead of 1777",
        ("login1: chmod 0777 /tmp",),
        ("login1: chmod 1777 /tmp",),
    ),
    Fault(
        "a node has another host name",
        "identity",
        ("node1",),
        "it calls itself elsewhere instead of node1",
        ("node1: hostname elsewhere",),
        ("node1: hostname node1",),
    ),
)

SLURM = (
    Fault(
        "large packets do not reach a node: its MTU is smaller than the others'",
        "packets",
        ("node2",),
        "packets of 1500 bytes are lost, small ones arrive",
        ("node2: ip link set eth0 mtu 1400",),
        ("node2: ip link set eth0 mtu 1500",),
    ),
    Fault(
        "a group has another gid on a node",
        "accounts",
        ("node2",),
        "the group alice has the gid 3001 instead of 2001",
        ("node2: sed -i s/^alice:x:2001:/alice:x:3001:/ /etc/group",),
        ("node2: sed -i s/^alice:x:3001:/alice:x:2001:/ /etc/group",),
    ),
    Fault(
        "what users write on a node is open to all: another umask",
        "login-shell",
        ("node1",),
        "the umask is 0000, on most hosts 0022",
        ("node1: echo umask 0 > /etc/profile.d/zz-fault.sh",),
        ("node1: rm /etc/profile.d/zz-fault.sh",),
    ),
    Fault(
        "/dev/shm is missing on a node",
        "shared-directories",
        ("node1",),
        "/dev/shm is no file system in memory",
        ("node1: umount --lazy /dev/shm; chmod 1777 /dev/shm",),
        ("node1: mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /dev/shm",),
    ),
    Fault(
        "two nodes do not reach each other (a blackhole route)",
        "ways",
        ("node1",),
        "node2",
        ("node1: ip route add blackhole $(getent hosts node2 | cut -d' ' -f1)",),
        ("node1: ip route del blackhole $(getent hosts node2 | cut -d' ' -f1)",),
    ),
    Fault(
        "munge has another key on a node",
        "munge",
        ("node2",),
        "do not understand each other: unmunge: Error: Invalid credential",
        (
            "node2: cp -p /etc/munge/munge.key /root/",
            "node2: dd if=/dev/urandom of=/etc/munge/munge.key bs=128 count=1; systemctl restart munge",
        ),
        ("node2: cp -p /root/munge.key /etc/munge/; rm /root/munge.key; systemctl restart munge",),
    ),
    Fault(
        "Slurm believes in less memory and fewer GPUs than the contract says",
        "nodes",
        ("node2",),
        "Slurm has 900 MiB, the contract 1024",
        *_on_controller(
            "slurm.conf", f"sed -Ei -e '{_APART}' -e 's/^(NodeName=node2 .*RealMemory=)1024/\\1900/M'"
        ),
    ),
)

DATABASE = (
    Fault(
        "the database is down",
        "accounting-daemon",
        ("ctl1",),
        "sacctmgr",
        ("ctl1: systemctl stop mariadb",),
        (f"ctl1: systemctl start mariadb; systemctl restart slurmdbd; {_ACCOUNTS}",),
    ),
    Fault(
        "a daemon of a host is down",
        "services",
        ("ctl1",),
        "mariadb inactive",
        (),
        (),
    ),
)

ACCOUNTING = (
    Fault(
        "slurmdbd is down",
        "accounting-daemon",
        ("ctl1",),
        "sacctmgr",
        ("ctl1: systemctl stop slurmdbd",),
        (f"ctl1: systemctl start slurmdbd; {_ACCOUNTS}",),
    ),
    Fault(
        "a node is 50 ms away (what answers echo requests there waits so long)",
        "packets",
        ("node1",),
        "no packet takes less than",
        (
            f"node1: systemd-run --quiet --unit slow-echo python3 -c '{_SLOW_ECHO}'",
            "node1: sysctl --quiet --write net.ipv4.icmp_echo_ignore_all=1",
        ),
        ("node1: sysctl --quiet --write net.ipv4.icmp_echo_ignore_all=0; systemctl stop slow-echo",),
    ),
)

CONTROLLER = (
    Fault(
        "slurmctld is down",
        "controllers",
        ("ctl1",),
        "is down",
        ("ctl1: systemctl stop slurmctld",),
        (f"ctl1: systemctl start slurmctld; {_STARTED}",),
    ),
)

JOBS = (
    Fault(
        "the home of users is not shared with a node",
        "shared-home",
        ("node2",),
        "the login node's file is not there",
        ("node2: mount -t tmpfs none /home",),
        ("node2: umount --lazy /home",),
    ),
    Fault(
        "everybody may log in on a node",
        "ssh-gate",
        ("node1",),
        "a user without a job there got in",
        ("node1: cp -p /etc/pam.d/sshd /root/; sed -i '/slurm_adopt/d' /etc/pam.d/sshd",),
        ("node1: mv /root/sshd /etc/pam.d/sshd",),
    ),
    Fault(
        "the ranks of an MPI program do not see what Slurm shares with them in /tmp",
        "mpi",
        ("",),
        "Exited with exit code",
        # PMIx shares files in TmpFS, where that is no part of the job's private /tmp.
        (
            f"ctl1: cp -p {_CONF}/slurm.conf {_CONF}/slurm.conf.mpi",
            f"ctl1: sed -i 's,^TmpFS=.*,TmpFS=/tmp,; s/ TmpDisk=[0-9]*//' {_CONF}/slurm.conf",
            f"ctl1: cp -p {_CONF}/job_container.conf {_CONF}/job_container.conf.mpi",
            f"ctl1: sed -i /^EntireStepInNS/d {_CONF}/job_container.conf; {_RECONFIGURE}",
        ),
        (
            f"ctl1: mv {_CONF}/job_container.conf.mpi {_CONF}/job_container.conf",
            f"ctl1: mv {_CONF}/slurm.conf.mpi {_CONF}/slurm.conf; {_RECONFIGURE}",
        ),
    ),
)

CONSTRAINTS = (
    Fault(
        "Slurm does not hold jobs to their CPUs",
        "cpu-binding",
        ("node1", "node2"),
        "a job with 1 CPUs may use 2",
        (
            f"ctl1: cp -p {_CONF}/slurm.conf {_CONF}/cgroup.conf /root/",
            f"ctl1: sed -i 's/Constrain\\(.*\\)=yes/Constrain\\1=no/' {_CONF}/cgroup.conf",
            f"ctl1: sed -i -e 's,^TaskPlugin=.*,TaskPlugin=task/cgroup,' {_CONF}/slurm.conf",
            f"ctl1: sed -i /^JobContainerType/d {_CONF}/slurm.conf",
            f"ctl1: systemctl restart slurmctld; {_STARTED}",
            f"node1: systemctl restart slurmd; {_REGISTERED}",
            f"node2: systemctl restart slurmd; {_REGISTERED}",
        ),
        (
            f"ctl1: mv /root/slurm.conf /root/cgroup.conf {_CONF}/; systemctl restart slurmctld; {_STARTED}",
            f"node1: systemctl restart slurmd; {_REGISTERED}",
            f"node2: systemctl restart slurmd; {_REGISTERED}",
        ),
    ),
    Fault(
        "Slurm does not hold jobs to their GPUs",
        "gpu-binding",
        ("node1", "node2"),
        "a job with one GPU could open 2",
        (),
        (),
    ),
    Fault(
        "Slurm does not hold jobs to their memory",
        "memory-limit",
        ("node1", "node2"),
        "a job used three times its memory and was not ended",
        (),
        (),
    ),
    Fault(
        "what jobs leave in /tmp stays",
        "private-tmp",
        ("node1", "node2"),
        "a job's file is still there",
        (),
        tuple(f"{node}: rm -f /tmp/deploy-validate-*" for node in ("node1", "node2")),
    ),
)

SPEED = (
    Fault(
        "a node is throttled to a twentieth of a CPU",
        "speed",
        ("node2",),
        "typical",
        ("podman: update --cpus 0.05 node2",),
        # More than there are; podman takes 0, and leaves the limit as it is.
        ("podman: update --cpus 100 node2",),
    ),
)

LIMIT = (
    Fault(
        "Slurm does not end jobs at their time limit",
        "time-limit",
        ("",),
        "with one minute is RUNNING",
        *_on_controller("slurm.conf", "sed -i '1iOverTimeLimit=UNLIMITED'"),
    ),
)

GROUPS = {
    "hosts": HOSTS,
    "slurm": SLURM,
    "database": DATABASE,
    "accounting": ACCOUNTING,
    "controller": CONTROLLER,
    "jobs": JOBS,
    "constraints": CONSTRAINTS,
    "speed": SPEED,
    "limit": LIMIT,
}

CONTAINERS = (
    Fault(
        "the plugin of containers is silently ignored on a node",
        "containers",
        ("node2",),
        "the job ran on the host instead of in its container",
        (
            f"ctl1: cp -p {_CONF}/plugstack.conf /root/",
            f"ctl1: sed -i s/^required/optional/ {_CONF}/plugstack.conf; {_RECONFIGURE}",
            "node2: mv /usr/lib/*/slurm-wlm/spank_pyxis.so /root/",
        ),
        (
            "node2: mv /root/spank_pyxis.so /usr/lib/*/slurm-wlm/",
            f"ctl1: mv /root/plugstack.conf {_CONF}/plugstack.conf; {_RECONFIGURE}",
        ),
    ),
)
"""Of a cluster with containers."""

WATCHED = {
    "hosts": (
        Fault(
            "an exporter is down",
            "targets",
            ("login1",),
            "job node is down",
            ("login1: systemctl stop prometheus-node-exporter",),
            ("login1: systemctl start prometheus-node-exporter; sleep 5",),
        ),
        Fault(
            "an alert fires",
            "alerts",
            ("node1",),
            "SlurmdStopped since",
            ("node1: systemctl stop slurmd; sleep 8",),
            ("node1: systemctl start slurmd; sleep 8",),
        ),
    ),
    "alertmanager": (
        Fault(
            "Alertmanager is down",
            "alertmanager",
            ("ctl1",),
            "Connection refused",
            ("ctl1: systemctl stop prometheus-alertmanager",),
            ("ctl1: systemctl start prometheus-alertmanager; sleep 5",),
        ),
        Fault(
            "a page that people open does not answer",
            "portals",
            ("ctl1",),
            "Alertmanager: Connection refused",
            (),
            (),
        ),
    ),
    "prometheus": (
        Fault(
            "Prometheus is down",
            "prometheus",
            ("ctl1",),
            "Connection refused",
            ("ctl1: systemctl stop prometheus",),
            ("ctl1: systemctl start prometheus; sleep 5",),
        ),
    ),
}
"""Of a cluster with monitoring."""
