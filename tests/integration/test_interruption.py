import signal
from pathlib import Path

from deploy.errors import ExitCode
from deploy.judge.summary import Outcome
from deploy.show.report import summary_of
from tests.integration.sites import LocalSite, eventually

LONG = """
- name: Quick
  ansible.builtin.ping:
- name: Long
  ansible.builtin.command: sleep 120
- name: Never
  ansible.builtin.ping:
"""


def _sleeping(site: LocalSite) -> bool:
    # With its duration: Ansible ends its own commands with "sleep 0".
    return any(_command(pid) == ["sleep", "120"] for pid in site.processes())


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def _wait_until_it_sleeps(site: LocalSite) -> None:
    eventually(lambda: _sleeping(site), 60)


def test_the_first_interrupt_stops_the_run_and_hosts_are_unknown(either_site: LocalSite) -> None:
    either_site.write(LONG)
    with either_site.started() as process:
        _wait_until_it_sleeps(either_site)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "node1  ok=1 changed=0 failed=0 unreachable=0 skipped=0" in output
    assert output.count(" unknown\n") == 2
    assert output.count("stopping: ") == 1
    assert not either_site.processes()
    assert not list(either_site.scratch.iterdir())
    summary = summary_of(either_site.recorded())
    assert summary.outcome is Outcome.INTERRUPTED
    assert [host.unknown for host in summary.hosts.values()] == [True, True]
    assert either_site.recorded().is_complete


def test_the_second_interrupt_kills_what_does_not_listen(site: LocalSite) -> None:
    site.write("""
- name: Deaf
  ansible.builtin.shell: "trap '' INT TERM HUP; sleep 120; sleep 120"
""")
    with site.started() as process:
        _wait_until_it_sleeps(site)
        process.send_signal(signal.SIGINT)
        assert process.stdout
        assert any("stopping: " in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert not site.processes()


def test_nothing_outlives_a_killed_deploy(either_site: LocalSite) -> None:
    either_site.write(LONG)
    with either_site.started() as process:
        _wait_until_it_sleeps(either_site)
        assert len(either_site.processes()) > 3
        process.kill()
        process.communicate(timeout=60)
        eventually(lambda: not either_site.processes(), 60)
        eventually(lambda: not list(either_site.scratch.iterdir()), 60)
        recorded = either_site.recorded()
        assert not recorded.is_complete
        assert summary_of(recorded).outcome is Outcome.INTERRUPTED
        assert summary_of(recorded).hosts["node1"].ok == 1
    either_site.write("""
- name: Look
  ansible.builtin.ping:
""")
    with either_site.started() as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == ExitCode.OK, output


def test_a_second_run_on_the_same_site_is_refused(site: LocalSite) -> None:
    site.write(LONG)
    with site.started() as first:
        _wait_until_it_sleeps(site)
        with site.start() as second:
            output, _ = second.communicate(timeout=60)
        assert second.returncode == ExitCode.BAD_INPUT
        assert "[site-locked]" in output
        assert f"process {first.pid}" in output
        assert _sleeping(site)
