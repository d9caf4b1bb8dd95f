"""What a job asks to be mailed arrives at the site's mail server, also one that was away."""

import time

from molecule.conftest import On

USER = ["setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
SECONDS = 90


def arrived(on: On, machine: str, text: str) -> str:
    """All that the server was given, once a text is in it."""
    deadline = time.monotonic() + SECONDS
    while text not in (mails := on(machine, "cat", "/srv/mails", check=False).stdout):
        assert time.monotonic() < deadline, mails + on(machine, "mailq", check=False).stdout
        time.sleep(0.5)
    return mails


def submit(on: On, machine: str, name: str, *options: str) -> None:
    job = ["sbatch", "--parsable", "--chdir=/", "--output=/dev/null", f"--job-name={name}", "--wrap=true"]
    on(machine, *USER, *job, *options)


def test_a_job_that_ended_is_mailed_to_its_owner(on: On, idle: str) -> None:
    submit(on, idle, "mailed", "--mail-type=END")
    mails = arrived(on, idle, "Name=mailed Ended")
    assert "RCPT TO:<alice@example.org>" in mails
    assert "MAIL FROM:<slurm@example.org>" in mails


def test_an_address_is_taken_as_it_is(on: On, idle: str) -> None:
    submit(on, idle, "elsewhere", "--mail-type=FAIL,END", "--mail-user=a.lice@elsewhere.example")
    arrived(on, idle, "Name=elsewhere Ended")
    assert "RCPT TO:<a.lice@elsewhere.example>" in on(idle, "cat", "/srv/mails").stdout


def test_a_mail_waits_for_a_server_that_is_away(on: On, idle: str) -> None:
    on(idle, "systemctl", "kill", "--signal=STOP", "mail-server")
    submit(on, idle, "late", "--mail-type=END")
    deadline = time.monotonic() + SECONDS
    while "slurm" not in on(idle, "mailq").stdout:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    on(idle, "systemctl", "kill", "--signal=CONT", "mail-server")
    arrived(on, idle, "Name=late Ended")


def test_nobody_reads_the_servers_password(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format=%U %a", "/etc/nullmailer/remotes").stdout == "mail 600\n"
