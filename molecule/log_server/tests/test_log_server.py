"""What the cluster's hosts send is kept, by host, and what should not come in does not."""

import time

import pytest

from molecule.conftest import Converge, On

SEND = """
import socket, ssl, sys
target, tls, line, own = sys.argv[1:]
connection = socket.create_connection((target, 6514), timeout=10, source_address=(own, 0) if own else None)
if tls == "tls":
    context = ssl.create_default_context(cafile="/root/logs.crt")
    connection = context.wrap_socket(connection, server_hostname="logs")
connection.sendall(line.encode() + b"\\n")
connection.close()
"""


FLOOD = """
import socket, ssl, sys
own, lines = sys.argv[1], int(sys.argv[2])
connection = socket.create_connection(("127.0.0.1", 6514), source_address=(own, 0))
context = ssl.create_default_context(cafile="/root/logs.crt")
connection = context.wrap_socket(connection, server_hostname="logs")
for number in range(0, lines, 1000):
    part = (f"<13>Nov 21 10:00:00 loud test: flood {n} x\\n" for n in range(number + 1, number + 1001))
    connection.sendall("".join(part).encode())
connection.close()
"""
FLOOD_LINES = 300_000


ADDRESSES = {"node7": "127.0.0.7", "node8": "127.0.0.8", "node9": "127.0.0.9"}
"""As the role is told in converge.yml."""


def deliver(
    on: On, machine: str, line: str, *, target: str = "127.0.0.1", tls: str = "tls", own: str = ""
) -> None:
    on(machine, "python3", "-c", SEND, target, tls, line, own, check=False)


def send(
    on: On, machine: str, host: str, text: str, *, target: str = "", tls: str = "tls", claims: str = ""
) -> None:
    line = f"<13>Nov 21 10:00:00 {claims or host} test: {text}"
    own = "" if target else ADDRESSES[host]
    deliver(on, machine, line, target=target or "127.0.0.1", tls=tls, own=own)


def arrives(on: On, machine: str, path: str, text: str, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while text not in on(machine, "sh", "-c", f"cat {path}", check=False).stdout:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.3)
    return True


def comes(on: On, machine: str, condition: str) -> bool:
    """Whether a command of the shell succeeds, for which it waits."""
    deadline = time.monotonic() + 60
    while on(machine, "sh", "-c", condition, check=False).returncode != 0:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_the_keeper_is_root_where_ubuntu_has_it_be_another(on: On) -> None:
    conf = on("trixie", "cat", "/etc/rsyslog.conf").stdout
    assert conf.startswith("$PrivDropToUser syslog\n$PrivDropToGroup syslog\n")
    assert on("trixie", "ps", "-C", "rsyslogd", "-o", "euser=,egroup=").stdout.split() == ["root", "root"]


def test_each_host_has_its_own_file(on: On, machine: str) -> None:
    for host in ("node7", "node8"):
        send(on, machine, host, f"from {host}")
        path = f"/var/log/cluster/{host}/messages.log"
        assert arrives(on, machine, path, f"from {host}")
        assert on(machine, "stat", "--format=%U %G %a", path).stdout == "root adm 640\n"
    assert "node8" not in on(machine, "cat", "/var/log/cluster/node7/messages.log").stdout


def test_a_host_is_known_by_its_address_whatever_it_says(on: On, machine: str) -> None:
    send(on, machine, "node8", "I am another", claims="node7")
    assert arrives(on, machine, "/var/log/cluster/node8/messages.log", "node8 test: I am another")
    claimed = on(machine, "cat", "/var/log/cluster/node7/messages.log", check=False).stdout
    assert "I am another" not in claimed


def test_an_address_without_a_name_has_a_place_of_its_own(on: On, machine: str) -> None:
    deliver(on, machine, "<13>Nov 21 10:00:00 node7 test: of nobody", own="127.0.0.77")
    assert arrives(on, machine, "/var/log/cluster/127.0.0.77/messages.log", "127.0.0.77 test: of nobody")


def test_what_grows_too_large_loses_its_oldest_lines(on: On, machine: str) -> None:
    send(on, machine, "node9", "before the flood")
    assert arrives(on, machine, "/var/log/cluster/node9/messages.log", "before the flood")
    grow = "umask 027; head -c 3000000 /dev/urandom | base64 >> /var/log/cluster/node9/messages.log"
    for _ in range(4):
        on(machine, "sh", "-c", grow)
        # Rotated files are named by the second; it takes another.
        assert comes(on, machine, '! test -e "$(date +/var/log/cluster/node9/messages.log-%Y%m%d-%s)"')
        started = on(machine, "systemctl", "start", "deploy-log-size.service", check=False)
        assert started.returncode == 0, on(machine, "journalctl", "--unit=deploy-log-size.service").stdout
    kept = on(machine, "du", "--summarize", "--block-size=1M", "/var/log/cluster/node9").stdout
    assert int(kept.split()[0]) <= 8
    send(on, machine, "node9", "after the flood")
    assert arrives(on, machine, "/var/log/cluster/node9/messages.log", "after the flood")
    assert on(machine, "systemctl", "is-active", "deploy-log-size.timer").stdout == "active\n"


def test_a_loud_sender_costs_a_quiet_one_no_lines(on: On, machine: str) -> None:
    """The quiet one speaks while the loud one does, and when all of that is on its way."""
    loud = ["python3", "-c", FLOOD, ADDRESSES["node7"], str(FLOOD_LINES)]
    on(machine, "systemd-run", "--quiet", "--unit=loud", "--remain-after-exit", *loud)
    for number in range(10):
        send(on, machine, "node8", f"quiet {number} of 20")
    assert comes(on, machine, 'test "$(systemctl show --value --property=SubState loud)" = exited')
    for number in range(10, 20):
        send(on, machine, "node8", f"quiet {number} of 20")
    on(machine, "systemctl", "stop", "loud")
    quiet = "grep --no-filename --only-matching 'quiet [0-9]* of 20' /var/log/cluster/node8/messages.log*"
    assert comes(on, machine, f'test "$({quiet} | sort --unique | wc --lines)" = 20')
    assert comes(on, machine, f"zgrep --quiet 'flood {FLOOD_LINES} ' /var/log/cluster/node7/messages.log*")


def test_what_is_sent_at_once_fills_no_disk(on: On, machine: str) -> None:
    """Far more than a host may have, faster than anybody looks; its last lines are kept."""
    seen = "/root/most"
    watch = (
        "most=0; while :; do now=$(du --summarize --block-size=1M /var/log/cluster/node9 | cut -f 1); "
        f'[ "$now" -le "$most" ] || {{ most=$now; echo $most > {seen}; }}; sleep 0.05; done'
    )
    send(on, machine, "node9", "before all that")
    assert arrives(on, machine, "/var/log/cluster/node9/messages.log", "before all that")
    on(machine, "systemd-run", "--quiet", "--unit=watch", "sh", "-c", watch)
    on(machine, "python3", "-c", FLOOD, ADDRESSES["node9"], str(3 * FLOOD_LINES))
    kept = "/var/log/cluster/node9/messages.log*"
    assert comes(on, machine, f"zgrep --quiet 'flood {3 * FLOOD_LINES} ' {kept}")
    on(machine, "systemctl", "stop", "watch")
    # A part more while the oldest is on its way out; what is sent is several times as much.
    assert int(on(machine, "cat", seen).stdout) <= 8 + 3


def test_what_another_host_logs_is_kept(on: On) -> None:
    on("bookworm", "logger", "--tag=probe", "hello from the other machine")
    path = "/var/log/cluster/bookworm/messages.log"
    assert arrives(on, "trixie", path, "probe: hello from the other machine", 30)


def test_a_host_sends_no_faster_than_it_is_told(on: On) -> None:
    lines = 4000
    began = time.monotonic()
    text = "".join(f"of a file {number}.\n" for number in range(1, lines + 1))
    on("bookworm", "sh", "-c", "mkdir -p /var/log/slurm; cat > /var/log/slurm/loud.log", data=text)
    kept = "zgrep --no-filename 'loud: of a file' /var/log/cluster/bookworm/messages.log*"
    assert comes(on, "trixie", f'test "$({kept} | sort --unique | wc --lines)" = {lines}')
    # As converge.yml says, a thousand a second in batches of a hundred; a slow machine takes longer.
    assert time.monotonic() - began > lines / 1000 - 0.2


def test_without_tls_nothing_comes_in(on: On, machine: str) -> None:
    send(on, machine, "node7", "in the clear", tls="none")
    send(on, machine, "node7", "after it")
    assert arrives(on, machine, "/var/log/cluster/node7/messages.log", "after it")
    assert "in the clear" not in on(machine, "sh", "-c", "cat /var/log/cluster/*/messages.log").stdout


def test_strangers_are_not_heard(on: On, machine: str) -> None:
    own = on(machine, "hostname", "--ip-address").stdout.split()[0]
    send(on, machine, "node7", "from a stranger", target=own)
    send(on, machine, "node7", "from a neighbour")
    assert arrives(on, machine, "/var/log/cluster/node7/messages.log", "from a neighbour")
    assert "stranger" not in on(machine, "sh", "-c", "cat /var/log/cluster/*/messages.log").stdout


@pytest.mark.parametrize("name", ["../../../etc/escape", ".."])
def test_a_name_is_no_way_out_of_the_directory(on: On, machine: str, name: str) -> None:
    text = f"climbing by {name}"
    # The older form of messages does not take such names for names.
    deliver(on, machine, f"<13>1 2026-11-21T10:00:00Z {name} test - - - {text}")
    outside = ("find", "/etc", "/var/log", "-name", "messages.log", "-not", "-path", "/var/log/cluster/*")
    search = ("grep", "--recursive", "--no-filename", text)
    deadline = time.monotonic() + 10
    while not on(machine, *search, "/etc", "/var/log", check=False).stdout and time.monotonic() < deadline:
        time.sleep(0.3)
    assert on(machine, *outside).stdout == ""
    assert text in on(machine, *search, "/var/log/cluster").stdout


def test_old_logs_go_and_new_ones_are_written(on: On, machine: str) -> None:
    send(on, machine, "node9", "before")
    assert arrives(on, machine, "/var/log/cluster/node9/messages.log", "before")
    on(machine, "logrotate", "--force", "/etc/logrotate.d/deploy-cluster")
    # rsyslog goes on with a new file when it has let go of the old one.
    assert comes(
        on, machine, "! ls -l /proc/$(pidof rsyslogd)/fd | grep -q /var/log/cluster/node9/messages.log-"
    )
    send(on, machine, "node9", "afterwards")
    assert arrives(on, machine, "/var/log/cluster/node9/messages.log", "afterwards")
    assert "before" not in on(machine, "cat", "/var/log/cluster/node9/messages.log").stdout
    assert on(machine, "systemctl", "is-active", "logrotate.timer").stdout == "active\n"


def test_nobody_else_reads_the_key_or_the_logs(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format=%U %a", "/etc/rsyslog-server.key").stdout == "root 600\n"
    assert on(machine, "find", "/var/log/cluster", "-perm", "/o+rwx").stdout == ""


def test_a_server_without_certificate_keeps_no_key(on: On, converge: Converge, machine: str) -> None:
    answer = converge(only=machine, without_tls=True)
    assert answer.returncode == 0, answer.stdout
    kept = on(machine, "ls", "/etc").stdout
    send(on, machine, "node7", "in the clear, as wanted", tls="none")
    arrived = arrives(on, machine, "/var/log/cluster/node7/messages.log", "in the clear, as wanted")
    answer = converge(only=machine)
    assert answer.returncode == 0, answer.stdout
    assert "rsyslog-server.key" not in kept
    assert arrived
