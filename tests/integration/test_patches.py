"""What deploy changes inside Ansible and ansible-runner may not be there: a run does without and says it."""

from pathlib import Path

import pytest
from ansible.executor import task_result
from ansible_runner.config.runner import RunnerConfig
from ansible_runner.runner import Runner

from deploy.errors import DeployError, ExitCode
from deploy.run.events import Event, HostResult, Level, Notice, Status
from deploy.run.execute import EarlyStart, RunRequest, execute
from deploy.run.settings import ansible_environment
from tests.integration.sites import LocalSite

TASK = """
- name: Write
  ansible.builtin.copy:
    content: "{{ word }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.txt"
    mode: "0644"
"""
MISSING = "import sys; sys.modules[{!r}] = None"
KEPT_ELSEWHERE = """
from types import FunctionType, SimpleNamespace
try:
    import ansible.utils.vars as them
except ImportError:  # in a host's Python
    pass
else:
    places = vars(them) | {"load_extra_vars": SimpleNamespace()}
    them.load_extra_vars = FunctionType(them.load_extra_vars.__code__, places)
"""
MISFITS = {
    "keeping compiled templates": MISSING.format("deploy.run.compiled_templates"),
    "one Ansible for several playbooks": KEPT_ELSEWHERE,
    "mitogen": MISSING.format("ansible_mitogen.planner"),
    "modules that mitogen runs without a process of their own": MISSING.format("deploy.run.not_forked"),
}
if hasattr(task_result, "_RawTaskResult"):
    # Since ansible-core 2.21 there is nothing that it would be for.
    MISFITS["tasks that are skipped without a process"] = MISSING.format("deploy.run.skipped_here")


def broken(site: LocalSite, how: str) -> dict[str, str]:
    """The environment of runs whose Ansible lacks something, from the start of each Python on."""
    (site.directory / "sitecustomize.py").write_text(how, encoding="utf-8")
    return ansible_environment(site.settings) | site.environment | {"PYTHONPATH": str(site.directory)}


@pytest.mark.parametrize("what", MISFITS)
@pytest.mark.parametrize("at_once", [True, False], ids=["work", "settled"])
def test_a_patch_that_does_not_fit_is_left_out_and_told_once(
    site: LocalSite, what: str, *, at_once: bool
) -> None:
    site.write(TASK)
    environment = broken(site, MISFITS[what])
    events: list[Event] = []
    with EarlyStart(environment, site.inventory, at_once=at_once) as early:
        for word in ("one", "two"):
            given = ("--extra-vars", f"word={word}")
            wanted = RunRequest(site.playbook, (site.inventory,), (), given, environment)
            assert execute(wanted, events.append, early=early).rc == 0
            assert (site.directory / "node1.txt").read_text() == word
    results = [event.status for event in events if isinstance(event, HostResult)]
    assert results == [Status.CHANGED] * 4
    (told,) = (event for event in events if isinstance(event, Notice))
    assert told.level is Level.WARNING
    assert told.text.startswith(f"{what} does not fit ansible-core ")
    assert told.text.endswith("this run goes without it, and may take longer")
    assert not site.processes()


def without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has ansible-runner know nothing of an attribute of its settings."""
    prepare = RunnerConfig.prepare

    def prepare_less(config: RunnerConfig) -> None:
        prepare(config)
        delattr(config, name)

    monkeypatch.setattr(RunnerConfig, "prepare", prepare_less)


@pytest.mark.parametrize("name", ["command", "env", "cwd"])
def test_a_runner_that_takes_no_command_is_told_and_runs_nothing(
    site: LocalSite, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write(TASK)
    without(name, monkeypatch)
    environment = ansible_environment(site.settings) | site.environment
    wanted = RunRequest(site.playbook, (site.inventory,), (), ("-e", "word=one"), environment)
    with pytest.raises(DeployError) as caught:
        execute(wanted, list[Event]().append)
    (finding,) = caught.value.findings
    assert (finding.reference, caught.value.exit_code) == ("runner-failed", ExitCode.INTERNAL)
    assert finding.message.startswith("ansible-runner 2.")
    assert f"'{name}'" in finding.message
    assert not (site.directory / "node1.txt").exists()


@pytest.mark.parametrize(("name", "own"), [("suppress_output_file", False), ("pexpect_timeout", 5)])
def test_a_runner_without_what_is_only_better_runs_and_it_is_told(
    site: LocalSite, name: str, own: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write(TASK)
    without(name, monkeypatch)
    run = Runner.run

    def run_its_own_way(runner: Runner) -> object:
        setattr(runner.config, name, own)
        return run(runner)

    monkeypatch.setattr(Runner, "run", run_its_own_way)
    finished = site.run("--extra-vars", "word=one")
    assert finished.execution.rc == 0
    assert (site.directory / "node1.txt").read_text() == "one"
    (told,) = (event for event in finished.events if isinstance(event, Notice))
    assert (told.level, f"'{name}'" in told.text) == (Level.WARNING, True)


def test_where_everything_fits_nothing_is_told(site: LocalSite, tmp_path: Path) -> None:
    site.write(TASK)
    environment = broken(site, "")
    events: list[Event] = []
    with EarlyStart(environment, site.inventory) as early:
        wanted = RunRequest(site.playbook, (site.inventory,), (), ("-e", "word=one"), environment)
        assert execute(wanted, events.append, early=early).rc == 0
    assert not [event for event in events if isinstance(event, Notice)]
    assert (tmp_path / "node1.txt").exists()


SKIPPED = """
- name: Never
  ansible.builtin.command: touch {{ playbook_dir }}/made
  when: [inventory_hostname is defined, word == 'other']
  register: looked
- name: Looks at what was skipped
  ansible.builtin.command: touch {{ playbook_dir }}/made
  when: looked is not skipped
- name: Always
  ansible.builtin.debug:
    msg: "{{ looked.false_condition }}"
  when: looked is skipped
- name: In a loop
  ansible.builtin.debug:
    msg: "{{ item }}"
  loop: [one, two]
  when: item == 'three'
- name: Without items
  ansible.builtin.debug:
    msg: "{{ item }}"
  loop: "{{ [word] | difference(['one']) }}"
  register: without_items
- name: Looks at what had no items
  ansible.builtin.debug:
    msg: x
  when: without_items.results | length > 0
- name: Say which packages are there
  ansible.builtin.set_fact:
    deb_packages: [bash, tar]
    cacheable: true
- name: Installed
  packages:
    name: "{{ ['bash'] + [] }}"
  register: installed
- name: Looks at what was installed
  ansible.builtin.debug:
    msg: "{{ installed.skip_reason }}"
  when: installed is not skipped
- name: Wrongly installed
  packages:
    name: "{{ is_not_there }}"
  # Its failure is compared, too, and must not end the play.
  ignore_errors: true
- name: Hidden
  ansible.builtin.debug:
    msg: x
  when: "'a secret' == word"
  no_log: true
- name: Included
  ansible.builtin.include_tasks: nowhere.yml
  when: word == 'other'
- name: On the first host alone
  ansible.builtin.debug:
    msg: x
  when: inventory_hostname == 'node1'
- name: Wrong
  ansible.builtin.debug:
    msg: x
  when: is_not_there == 1
  # Its failure is compared, too, and must not end the play.
  ignore_errors: true
"""


def test_what_is_skipped_without_a_process_is_told_as_ansible_tells_it(
    site: LocalSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write(SKIPPED)
    plugins = site.directory / "action_plugins"
    plugins.mkdir()
    (plugins / "packages.py").symlink_to(Path(__file__).parents[2] / "playbooks/action_plugins/packages.py")
    told = []
    for without_it in ("", "skipped-here"):
        monkeypatch.setenv("DEPLOY_WITHOUT", without_it)
        finished = site.run("--extra-vars", "word=one")
        results = [event for event in finished.events if isinstance(event, HostResult)]
        told.append(sorted((it.task, it.host, it.status, it.message, it.ignored) for it in results))
        assert finished.execution.rc == 0
    assert told[0] == told[1]
    assert not (site.directory / "made").exists()
    statuses = {(task, host): status for task, host, status, *_ in told[0]}
    skipped = {task for (task, _), status in statuses.items() if status is Status.SKIPPED}
    assert skipped == {
        "Never",
        "Looks at what was skipped",
        "In a loop",
        "Without items",
        "Looks at what had no items",
        "Installed",
        "Looks at what was installed",
        "Hidden",
        "Included",
        "On the first host alone",
    }
