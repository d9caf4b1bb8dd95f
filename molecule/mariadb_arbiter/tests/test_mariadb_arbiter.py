"""An arbitrator votes with a member, nobody without the key does, and killed ones come back."""

import time
from collections.abc import Callable

from molecule.conftest import Converge, On

ARBITER, MEMBER = "bookworm", "trixie"


def asked(on: On, statement: str) -> str:
    """The member's answer; empty while it does not run."""
    answer = on(MEMBER, "mariadb", "--batch", "--skip-column-names", data=statement, check=False)
    return answer.stdout.strip()


def votes(on: On) -> str:
    return asked(on, "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_cluster_status')")


def group(on: On) -> str:
    """Which of its groups it is of which the member takes part: a new one where somebody comes or goes."""
    return asked(on, "SHOW STATUS LIKE 'wsrep_cluster_conf_id'")


BOTH = "wsrep_cluster_size\t2\nwsrep_cluster_status\tPrimary"


def lines(on: On, file: str) -> set[str]:
    return {*on(MEMBER, "cat", file).stdout.split()}


def until(is_so: Callable[[], bool], on: On, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        log = on(ARBITER, "journalctl", "--unit", "garb", "--lines", "20", "--output", "cat").stdout
        assert time.monotonic() < deadline, f"{votes(on)}\n{log}"
        time.sleep(0.5)


def test_both_have_a_vote(on: On) -> None:
    until(lambda: votes(on) == BOTH, on)
    assert votes(on) == BOTH


def test_what_they_know_each_other_by_is_theirs_alone(on: On) -> None:
    shown = "--format=%U %a"
    assert on(ARBITER, "stat", shown, "/var/lib/garb/member.pem").stdout == "_garb 600\n"
    assert on(MEMBER, "stat", shown, "/etc/mysql/deploy-cluster.pem").stdout == "mysql 600\n"
    certificates = {
        on(ARBITER, "cat", "/var/lib/garb/member.crt").stdout,
        on(MEMBER, "cat", "/etc/mysql/deploy-cluster.crt").stdout,
    }
    assert len(certificates) == 1
    assert on(ARBITER, "ps", "-o", "user=", "-C", "garbd").stdout.split() == ["_garb"]


def test_nobody_without_the_key_is_a_member(on: On) -> None:
    """Somebody on a host of the cluster who knows all but the key."""
    until(lambda: votes(on) == BOTH, on)
    place = on(MEMBER, "hostname", "--all-ip-addresses").stdout.split()[0]
    make = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=deploy-database -keyout /tmp/k -out /tmp/c"
    on(ARBITER, "sh", "-c", f"{make} && cp /var/lib/garb/member.crt /tmp/ca")
    options = "gmcast.listen_addr=tcp://127.0.0.1:5567;socket.ssl_key=/tmp/k;socket.ssl_cert=/tmp/c;socket.ssl_ca=/tmp/ca"
    words = ("timeout", "20", "garbd", "-a", f"gcomm://{place}:4567", "-g", "scenario", "-o")
    for way in (options, "gmcast.listen_addr=tcp://127.0.0.1:5567"):
        answer = on(ARBITER, *words, way, check=False)
        assert answer.returncode != 0
        assert "Shifting OPEN -> PRIMARY" not in answer.stdout + answer.stderr
        assert votes(on) == BOTH


def test_a_killed_arbitrator_votes_again(on: On) -> None:
    until(lambda: votes(on) == BOTH, on)
    before = group(on)
    on(ARBITER, "systemctl", "kill", "--signal=KILL", "garb")
    # It takes the member five seconds to notice, as long as the arbitrator takes to come back.
    until(lambda: group(on) != before and votes(on) == BOTH, on)
    assert on(ARBITER, "systemctl", "is-active", "garb").stdout == "active\n"


def test_after_all_were_killed_they_begin_by_themselves(on: On) -> None:
    made = "CREATE TABLE slurm_acct_db.kept (x INT PRIMARY KEY); INSERT INTO slurm_acct_db.kept VALUES (7)"
    on(MEMBER, "mariadb", data=made)
    assert asked(on, "SELECT x FROM slurm_acct_db.kept") == "7"
    for machine, unit in ((MEMBER, "mariadb"), (ARBITER, "garb")):
        on(machine, "systemctl", "kill", "--signal=KILL", unit)
    until(lambda: votes(on) == BOTH, on, seconds=240)
    until(lambda: asked(on, "SELECT x FROM slurm_acct_db.kept") == "7", on)


def test_no_row_is_lost_that_was_confirmed(on: On) -> None:
    """Each row is confirmed before the next one comes, until all are killed in the midst of them."""
    until(lambda: votes(on) == BOTH, on)
    on(MEMBER, "mariadb", data="CREATE TABLE slurm_acct_db.confirmed (x INT PRIMARY KEY)")
    confirmed = {row for first in (1000000, 2000000, 3000000) for row in confirmed_until_killed(on, first)}
    assert confirmed <= {*asked(on, "SELECT x FROM slurm_acct_db.confirmed").split()}


def confirmed_until_killed(on: On, first: int) -> set[str]:
    """The rows that a client heard of as written; afterwards the database answers again."""
    file = f"/run/confirmed-{first}"
    statements = "s/.*/INSERT INTO slurm_acct_db.confirmed VALUES (&); SELECT &;/"
    client = "mariadb --batch --skip-column-names --unbuffered"
    write = f"seq {first} {first + 999999} | sed '{statements}' | {client} > {file}"
    on(MEMBER, "touch", file)
    on(MEMBER, "systemd-run", "--collect", "--unit=writes", "sh", "-c", write)
    until(lambda: len(lines(on, file)) > 200, on)
    for machine, unit in ((MEMBER, "mariadb"), (ARBITER, "garb")):
        on(machine, "systemctl", "kill", "--signal=KILL", unit)
    until(lambda: on(MEMBER, "systemctl", "is-active", "writes", check=False).returncode != 0, on)
    until(lambda: votes(on) == BOTH and asked(on, "SELECT 1") == "1", on, seconds=240)
    return lines(on, file)


def test_a_member_that_serves_begins_nothing_anew(on: On, converge: Converge) -> None:
    until(lambda: votes(on) == BOTH, on)
    uuid = asked(on, "SHOW STATUS LIKE 'wsrep_cluster_state_uuid'")
    started = on(MEMBER, "systemctl", "show", "mariadb", "--property=InvocationID").stdout
    answer = converge()
    assert answer.returncode == 0, answer.stdout
    assert asked(on, "SHOW STATUS LIKE 'wsrep_cluster_state_uuid'") == uuid
    assert on(MEMBER, "systemctl", "show", "mariadb", "--property=InvocationID").stdout == started


def test_the_only_one_with_rows_is_not_restarted(on: On, converge: Converge) -> None:
    """What came beside its settings is read at the next start, when another one can be joined."""
    until(lambda: votes(on) == BOTH, on)
    started = on(MEMBER, "systemctl", "show", "mariadb", "--property=InvocationID").stdout
    on(MEMBER, "touch", "/etc/mysql/mariadb.conf.d/99-of-others.cnf")
    answer = converge("-v")
    assert answer.returncode == 0, answer.stdout
    assert "MariaDB goes on with its former settings" in answer.stdout
    assert on(MEMBER, "systemctl", "show", "mariadb", "--property=InvocationID").stdout == started
    on(MEMBER, "rm", "/etc/mysql/mariadb.conf.d/99-of-others.cnf")


def test_one_with_rows_is_not_made_an_arbitrator(on: On, converge: Converge) -> None:
    until(lambda: votes(on) == BOTH, on)
    answer = converge(arbiter=MEMBER, member="nobody")
    assert answer.returncode != 0
    assert "this host is a member of the accounting database with rows" in answer.stderr
    assert votes(on) == BOTH
    on(MEMBER, "test", "!", "-e", "/var/lib/garb")


def test_another_key_is_that_of_both(on: On, converge: Converge) -> None:
    until(lambda: votes(on) == BOTH, on)
    before = on(MEMBER, "cat", "/etc/mysql/deploy-cluster.crt").stdout
    answer = converge(secret="another secret of this scenario")  # noqa: S106 - of a test
    assert answer.returncode == 0, answer.stdout
    until(lambda: votes(on) == BOTH, on)
    after = on(MEMBER, "cat", "/etc/mysql/deploy-cluster.crt").stdout
    assert after != before
    place = on(ARBITER, "hostname", "--all-ip-addresses").stdout.split()[0]
    shown = "openssl s_client -connect {}:4567 </dev/null 2>/dev/null | openssl x509"
    assert on(MEMBER, "sh", "-c", shown.format(place)).stdout.split() == after.split()
    assert asked(on, "SELECT x FROM slurm_acct_db.kept") == "7"
