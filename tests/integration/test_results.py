import errno
import os
from pathlib import Path

import pytest

from deploy.errors import ExitCode
from deploy.judge.findings import findings_of
from deploy.judge.summary import Outcome
from deploy.run.events import Ending, Level, Notice, PhaseEnded, Retry, RunEnded, Stats, Status, TaskStarted
from deploy.run.execute import RunRequest, execute
from deploy.run.settings import ansible_environment
from deploy.show.page import as_html
from deploy.show.report import as_json, as_text
from deploy.show.summary import summary_json
from tests.integration.sites import LocalSite, eventually

SECRET = "xyzzy-31415-plugh"  # noqa: S105 - looked for, nowhere found


def test_a_run_that_changes_nothing_converges(either_site: LocalSite) -> None:
    either_site.write("""
- name: Look
  ansible.builtin.stat:
    path: /
""")
    run = either_site.run()
    assert run.summary.outcome is Outcome.CONVERGED
    assert run.summary.exit_code == ExitCode.OK
    assert [(host.ok, host.changed) for host in run.summary.hosts.values()] == [(1, 0), (1, 0)]
    assert isinstance(run.events[-1], RunEnded)
    assert run.execution.ending is Ending.FINISHED
    assert not list(either_site.scratch.iterdir())
    assert not either_site.processes()


def test_a_task_has_the_id_that_it_names(either_site: LocalSite) -> None:
    either_site.write("""
- name: Look
  ansible.builtin.stat:
    path: /
  vars:
    deploy_step: look
- name: Fail
  ansible.builtin.fail:
  vars:
    deploy_step: fail
""")
    run = either_site.run()
    assert [event.step for event in run.events if isinstance(event, TaskStarted)] == ["look", "fail"]
    assert [(result.step, result.status) for result in run.results()] == [
        ("look", Status.OK),
        ("fail", Status.FAILED),
    ]


_PHASES = """
[phase_first]
node1
node2
[phase_second]
node2
[phase_third]
node1
node2
"""


def _phases(site: LocalSite, *plays: str) -> list[tuple[str, tuple[str, ...]]]:
    """The ends of phases in a run of plays, each with its only task that fails where ``bad`` is true."""
    site.inventory.write_text(site.inventory.read_text(encoding="utf-8") + _PHASES, encoding="utf-8")
    text = "".join(
        f"- hosts: {play}\n  gather_facts: false\n  tasks:\n"
        "  - ansible.builtin.command: 'false'\n"
        "    when: bad | default(false) and inventory_hostname == 'node2'\n"
        "  - ansible.builtin.command: 'true'\n"
        for play in plays
    )
    site.playbook.write_text(text, encoding="utf-8")
    events = site.run().events
    return [(event.phase, event.hosts) for event in events if isinstance(event, PhaseEnded)]


def test_the_end_of_a_phase_names_the_hosts_that_came_to_it(either_site: LocalSite) -> None:
    assert _phases(either_site, "phase_first", "localhost", "phase_second") == [
        ("first", ("node1", "node2")),
        ("second", ("node2",)),
    ]


def test_a_host_that_fails_ends_no_phase_any_more(either_site: LocalSite) -> None:
    bad = "phase_first\n  vars: {bad: true}"
    assert _phases(either_site, bad, "phase_third") == [("first", ("node1",)), ("third", ("node1",))]


def test_who_is_taken_out_with_another_does_not_end_the_phase(either_site: LocalSite) -> None:
    bad = "phase_third\n  vars: {bad: true}\n  max_fail_percentage: 0"
    assert _phases(either_site, "phase_first", bad, "phase_second") == [
        ("first", ("node1", "node2")),
        ("third", ()),
    ]


def test_batches_of_hosts_end_the_phase_each_by_itself(either_site: LocalSite) -> None:
    assert _phases(either_site, "phase_first\n  serial: 1", "phase_second") == [
        ("first", ("node1",)),
        ("first", ("node2",)),
        ("second", ("node2",)),
    ]


def test_where_a_failure_is_fatal_for_all_nobody_ends_the_phase(either_site: LocalSite) -> None:
    bad = "phase_first\n  vars: {bad: true}\n  any_errors_fatal: true"
    assert _phases(either_site, bad, "phase_third") == [("first", ())]


def test_what_is_rescued_or_ignored_ends_the_phase(either_site: LocalSite) -> None:
    either_site.inventory.write_text(either_site.inventory.read_text(encoding="utf-8") + _PHASES)
    either_site.playbook.write_text("""
- hosts: phase_first
  gather_facts: false
  tasks:
    - block:
        - ansible.builtin.command: "false"
      rescue:
        - ansible.builtin.command: "true"
    - ansible.builtin.command: "false"
      ignore_errors: true
- hosts: phase_third
  gather_facts: false
  tasks:
    - block:
        - ansible.builtin.command: "false"
      rescue:
        - ansible.builtin.command: "false"
          when: inventory_hostname == 'node1'
""")
    ends = [(e.phase, e.hosts) for e in either_site.run().events if isinstance(e, PhaseEnded)]
    assert ends == [("first", ("node1", "node2")), ("third", ("node2",))]


def test_a_phase_of_nobody_has_no_end(either_site: LocalSite) -> None:
    assert _phases(either_site, "phase_nobody", "phase_second") == [("second", ("node2",))]


def test_a_phase_that_failed_on_all_of_its_hosts_is_the_last(either_site: LocalSite) -> None:
    assert _phases(either_site, "phase_second\n  vars: {bad: true}", "phase_third") == [("second", ())]


def test_what_a_run_starts_may_use_every_cpu(either_site: LocalSite) -> None:
    either_site.write(f"""
- name: Look
  ansible.builtin.shell: test $(nproc) = {len(os.sched_getaffinity(0))}
""")
    assert either_site.run().summary.outcome is Outcome.CONVERGED


def test_an_ansible_that_ends_before_its_recap_broke_whatever_its_exit_status(either_site: LocalSite) -> None:
    filters = either_site.directory / "filter_plugins"
    filters.mkdir()
    (filters / "leave.py").write_text("""
import os

class FilterModule:
    def filters(self):
        return {"leave": os._exit}
""")
    either_site.write("- name: Look\n  ansible.builtin.ping:", play="A phase\n  serial: '{{ 0 | leave }}'")
    run = either_site.run()
    assert (run.execution.rc, run.execution.ending) == (1, Ending.FINISHED)
    assert run.summary.outcome is Outcome.FAILED
    assert run.summary.trouble == ("ansible-playbook ended with return code 1 and said nothing",)
    assert all(host.unknown for host in run.summary.hosts.values())


def test_changes_and_skips_are_counted(site: LocalSite) -> None:
    site.write("""
- name: Write
  ansible.builtin.copy:
    content: new
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.txt"
    mode: "0644"
  diff: true
- name: Not here
  ansible.builtin.ping:
  when: false
""")
    run = site.run("--diff")
    host = run.summary.hosts["node1"]
    assert (host.ok, host.changed, host.skipped) == (1, 1, 1)
    written, skipped = run.results()
    assert written.status is Status.CHANGED
    assert written.diff[0].after == "new"
    assert written.path == f"{site.playbook}:5"
    assert skipped.status is Status.SKIPPED
    assert run.summary.seconds > 0


def test_a_failed_task_says_why_and_fails_its_host_alone(either_site: LocalSite) -> None:
    either_site.write("""
- name: Break
  ansible.builtin.shell: "echo some reason >&2; exit 3"
  when: inventory_hostname == 'node2'
- name: Goes on
  ansible.builtin.ping:
""")
    run = either_site.run()
    assert run.summary.outcome is Outcome.FAILED
    assert run.summary.exit_code == ExitCode.FAILED
    (failure,) = run.summary.failures
    assert failure.host == "node2"
    assert failure.message == "return code 3 from: echo some reason >&2; exit 3\nsome reason"
    assert run.summary.hosts["node1"].ok == 1
    assert run.summary.hosts["node2"].failed == 1


def test_an_unreachable_host_alone_is_its_own_outcome(either_site: LocalSite) -> None:
    with either_site.inventory.open("a") as inventory:
        inventory.write("away ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=9\n")
    either_site.write("""
- name: Knock
  ansible.builtin.ping:
""")
    run = either_site.run()
    assert run.summary.outcome is Outcome.UNREACHABLE
    assert run.summary.exit_code == ExitCode.UNREACHABLE
    assert run.summary.hosts["away"].unreachable == 1
    assert run.summary.hosts["node1"].ok == 1
    (failure,) = run.summary.failures
    assert "refused" in failure.message.lower()


def test_rescued_and_ignored_failures_fail_nobody(site: LocalSite) -> None:
    site.write("""
- name: Guarded
  block:
    - name: Nested
      block:
        - name: Breaks
          ansible.builtin.command: /bin/false
  rescue:
    - name: Fixes
      ansible.builtin.debug:
        msg: fixed
- name: Does not matter
  ansible.builtin.command: /bin/false
  ignore_errors: true
""")
    run = site.run()
    assert run.summary.outcome is Outcome.CONVERGED
    assert not run.summary.failures
    breaks, fixes, ignored = run.results()
    assert (breaks.verdict, fixes.message, ignored.verdict) == ("rescued", "fixed", "ignored")
    host = run.summary.hosts["node1"]
    assert (host.failed, host.rescued, host.ignored) == (0, 1, 1)


def test_a_failure_inside_a_rescue_is_a_failure(site: LocalSite) -> None:
    site.write("""
- name: Guarded
  block:
    - name: Breaks
      ansible.builtin.command: /bin/false
  rescue:
    - name: Breaks too
      ansible.builtin.command: /bin/false
""")
    run = site.run()
    assert [failure.task for failure in run.summary.failures] == ["Breaks too", "Breaks too"]
    assert run.summary.outcome is Outcome.FAILED


def test_a_loop_is_one_result_and_names_the_items_that_failed(site: LocalSite) -> None:
    site.write("""
- name: Each
  ansible.builtin.command: "test {{ item }} != b"
  loop: [a, b, c]
  changed_when: true
""")
    run = site.run()
    (result,) = run.results()
    assert result.message == "b: return code 1 from: test b != b"


def test_secrets_reach_neither_journal_nor_report_nor_disk(either_site: LocalSite, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.yml"
    secrets.write_text(f"secret: {SECRET}\n")
    either_site.write("""
- name: Changes
  ansible.builtin.command: "echo {{ secret }}"
  changed_when: true
  no_log: true
- name: Loops
  ansible.builtin.command: "echo {{ item }}{{ secret }}"
  changed_when: item == 'a'
  no_log: true
  loop: [a, b]
- name: Fails
  ansible.builtin.shell: "echo {{ secret }} >&2; exit 1"
  no_log: true
""")
    run = either_site.run("--diff", variable_files=(secrets,))
    changes, loops, fails = run.results()
    assert changes.status is Status.CHANGED
    assert loops.status is Status.CHANGED
    assert fails.status is Status.FAILED
    assert "hidden" in fails.message
    recorded = either_site.recorded()
    shown = [as_text(recorded), str(as_json(recorded)), as_html(recorded)]
    shown += [path.read_text() for path in run.journal.iterdir()]
    assert not [text for text in shown if SECRET in text]
    assert not list(either_site.scratch.iterdir())


def test_neither_environment_nor_arguments_are_written_while_it_runs(
    site: LocalSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", SECRET)
    site.write("""
- name: Look for it
  ansible.builtin.shell: grep --recursive --count --no-filename "$SOME_TOKEN" "$TMPDIR/.." || true
  changed_when: false
  register: found
- name: Say it
  ansible.builtin.debug:
    msg: "{{ found.stdout_lines | map('int') | sum }} in {{ found.stdout_lines | length > 0 }}"
""")
    run = site.run()
    assert run.results()[-1].message == "0 in True"


def test_a_syntax_error_is_bad_input_and_is_shown(site: LocalSite) -> None:
    site.playbook.write_text("- name: A phase\n  hosts: [all\n")
    run = site.run()
    assert run.summary.outcome is Outcome.FAILED
    assert run.summary.exit_code == ExitCode.BAD_INPUT
    assert str(site.playbook) in "\n".join(run.summary.trouble)


def test_a_wrong_vault_password_is_shown(site: LocalSite, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("wrong\n")
    vaulted = tmp_path / "vaulted.yml"
    vaulted.write_text("$ANSIBLE_VAULT;1.1;AES256\n" + "61" * 40 + "\n")
    site.write("""
- name: Look
  ansible.builtin.ping:
""")
    run = site.run("--vault-password-file", str(password), variable_files=(vaulted,))
    assert run.summary.exit_code == ExitCode.BAD_INPUT
    assert "vault" in "\n".join(run.summary.trouble).lower()


def test_a_missing_module_is_shown(site: LocalSite) -> None:
    site.write("""
- name: Nothing there
  no.such.module:
""")
    run = site.run()
    assert run.summary.outcome is Outcome.FAILED
    assert "no.such.module" in "\n".join(run.summary.trouble)


def test_a_warning_is_a_notice_on_one_line(site: LocalSite) -> None:
    site.write(f"""
- name: Warn
  ansible.builtin.command: "{{{{ ansible_playbook_python }}}} -c pass"
  changed_when: false
- name: Fail to say
  ansible.builtin.fail:
    msg: "{"long " * 100}"
""")
    run = site.run()
    assert run.summary.failures[0].message == ("long " * 100).strip()
    notices = [event for event in run.events if isinstance(event, Notice) and event.level is Level.OUTPUT]
    assert not [notice for notice in notices if "\n" in notice.text]


def test_waiting_is_told(site: LocalSite) -> None:
    site.write("""
- name: Wait
  ansible.builtin.command: /bin/false
  changed_when: false
  register: answer
  until: answer.rc == 0
  retries: 1
  delay: 0
""")
    run = site.run()
    retry = next(event for event in run.events if isinstance(event, Retry))
    assert (retry.host in {"node1", "node2"}, retry.task, retry.retries) == (True, "Wait", 2)
    # The one that failed, or since ansible-core 2.21 the one that comes.
    assert retry.attempts in {1, 2}


def test_hostile_strings_stay_text(site: LocalSite) -> None:
    site.write(r"""
- name: "<script>alert(1)</script> [red]bold[/red] \x1b[31m \u202e {{ 'x' * 3 }} ünï\ncode"
  ansible.builtin.fail:
    msg: "</pre><img src=x onerror=alert(1)> [/] \x1b]0;title\x07 \u0000 end"
""")
    run = site.run()
    assert run.summary.failures, run.summary.trouble
    failure = run.summary.failures[0]
    assert failure.task == "<script>alert(1)</script> [red]bold[/red] xxx ünï code"
    assert "\x1b" not in failure.message
    assert failure.message.endswith("end")
    page = as_html(site.recorded())
    assert "<script>" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


def test_huge_output_loses_neither_status_nor_time(site: LocalSite) -> None:
    site.write("""
- name: Much
  ansible.builtin.command: head --bytes 3000000 /dev/zero
  changed_when: true
- name: Much and wrong
  ansible.builtin.shell: "seq 400000; echo the reason >&2; exit 1"
""")
    run = site.run()
    much, wrong = run.results()
    assert much.status is Status.CHANGED
    assert wrong.message.endswith("the reason")
    assert (run.journal / "events.jsonl").stat().st_size < 20_000


def test_arguments_stay_whole(site: LocalSite) -> None:
    site.write("""
- name: Say it
  ansible.builtin.debug:
    msg: "{{ words }}"
""")
    run = site.run("--extra-vars", '{"words": "two  words; $(id) \'quoted\'"}')
    assert run.results()[0].message == "two  words; $(id) 'quoted'"


def test_the_callers_own_ansible_configuration_changes_nothing(
    site: LocalSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "ansible.cfg").write_text("[defaults]\nno_such_strategy = x\nstrategy = nonsense\n")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("ANSIBLE_STRATEGY", "nonsense")
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "nonsense")
    site.write("""
- name: Look
  ansible.builtin.ping:
""")
    assert site.run().summary.outcome is Outcome.CONVERGED


def test_what_the_display_raises_ends_the_run_and_surfaces(site: LocalSite) -> None:
    site.write("""
- name: Long
  ansible.builtin.command: sleep 60
""")

    def on_event(event: object) -> None:
        if isinstance(event, TaskStarted):
            raise OSError(errno.ENOSPC, "disk full")

    environment = ansible_environment(site.settings) | site.environment
    with pytest.raises(OSError, match="disk full"):
        execute(RunRequest(site.playbook, (site.inventory,), environment=environment), on_event)
    assert not site.processes()
    assert not list(site.scratch.iterdir())


def test_the_same_journal_gives_the_same_report(site: LocalSite) -> None:
    site.write("""
- name: Write
  ansible.builtin.command: echo hello
  changed_when: true
""")
    run = site.run()
    assert [type(event) for event in site.recorded().events()] == [type(event) for event in run.events]
    assert list(site.recorded().events()) == run.events
    assert any(isinstance(event, Stats) for event in run.events)
    assert as_json(site.recorded())["hosts"] == summary_json(run.summary)["hosts"]
    assert as_html(site.recorded()) == as_html(site.recorded())
    assert oct(run.journal.stat().st_mode)[-3:] == "700"
    assert os.stat(run.journal / "events.jsonl").st_mode & 0o077 == 0  # noqa: PTH116


CHECKED_FIRST = """\
- name: Check
  hosts: all
  gather_facts: false
  max_fail_percentage: 0
  tasks:
    - name: Is it fit
      ansible.builtin.command: test {{ inventory_hostname }} != {{ unfit }}
      changed_when: false
- name: Change
  hosts: all
  gather_facts: false
  tasks:
    - name: Change it
      ansible.builtin.command: "true"
      changed_when: true
"""


def test_one_unfit_host_stops_all_and_an_unreachable_one_does_not(either_site: LocalSite) -> None:
    """What playbooks/check.yml is built on."""
    with either_site.inventory.open("a") as inventory:
        inventory.write("away ansible_connection=ssh ansible_host=127.0.0.1 ansible_port=9\n")
    either_site.playbook.write_text(CHECKED_FIRST)
    stopped = either_site.run("--extra-vars", "unfit=node2").summary
    assert stopped.outcome is Outcome.FAILED
    assert [(host.ok, host.changed, host.failed) for host in stopped.hosts.values()] == [
        (1, 0, 0),
        (0, 0, 1),
        (0, 0, 0),
    ]
    went_on = either_site.run("--extra-vars", "unfit=nobody").summary
    assert went_on.outcome is Outcome.UNREACHABLE
    assert [host.changed for host in went_on.hosts.values()] == [1, 1, 0]


def test_a_task_that_hangs_ends_in_time(either_site: LocalSite) -> None:
    pipe = either_site.directory / "pipe"
    os.mkfifo(pipe)
    either_site.write(f"""
- name: Read what never comes
  ansible.builtin.slurp:
    src: "{pipe}"
  timeout: 2
- name: Go on
  ansible.builtin.stat:
    path: /
""")
    run = either_site.run("--limit", "node1")
    assert [result.status for result in run.results()] == [Status.FAILED]
    assert "Timed out after 2" in run.results()[0].message
    # Over ssh it ends with its connection; here it is let go.
    os.close(os.open(pipe, os.O_RDWR))
    eventually(lambda: not either_site.processes())


def test_every_task_has_a_time_limit(either_site: LocalSite) -> None:
    either_site.write("""
- name: Ask how long
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.config', 'TASK_TIMEOUT') }} s"
""")
    assert either_site.run().results()[0].message == "3600 s"


_DIES = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule

AnsibleModule(argument_spec={}, supports_check_mode=True)
open("/no/such/file")
"""


def test_a_module_that_dies_is_told_without_its_traceback(either_site: LocalSite) -> None:
    library = either_site.directory / "library"
    library.mkdir()
    (library / "dies.py").write_text(_DIES, encoding="utf-8")
    either_site.write("- name: Die\n  dies:\n")
    run = either_site.run()
    (message,) = {failure.message for failure in run.summary.failures}
    assert "No such file or directory: '/no/such/file'" in message
    assert "\n" not in message
    # Without mitogen Ansible itself says it, and nothing tells it from what a module says.
    if either_site.settings.mitogen:
        assert message.endswith("(dies.py:5)")
        found = [finding.reference for failure in run.summary.failures for finding in findings_of(failure)]
        assert found == ["module-died", "module-died"]
