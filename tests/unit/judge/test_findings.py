import pytest

from deploy.errors import Finding, Severity
from deploy.judge.findings import checked, findings_of, is_refused, with_findings
from deploy.run.events import HostResult, Status
from deploy.run.message import DIED


def result(message: str = "", status: Status = Status.FAILED, **more: object) -> HostResult:
    values = {"at": 1.0, "host": "node1", "play": "P", "role": "", "task": "t", "path": "", "seconds": 1.0}
    return HostResult(**{**values, "status": status, "message": message, **more})  # type: ignore[arg-type]


NOT_SENT = 'Data could not be sent to remote host "10.0.0.1". Make sure this host can be reached over ssh:'
# As deploy/run/message.py leaves what Ansible and mitogen say.
RECORDED = [
    (
        Status.UNREACHABLE,
        "Host key checking is enabled, and SSH reported an unrecognized or mismatching host key.",
        "host-key-wrong",
    ),
    (
        Status.UNREACHABLE,
        f"{NOT_SENT} Host key verification failed.",
        "host-key-wrong",
    ),
    (Status.UNREACHABLE, "SSH authentication is incorrect", "ssh-login-refused"),
    (
        Status.UNREACHABLE,
        f"{NOT_SENT} ghost@10.0.0.1: Permission denied (publickey).",
        "ssh-login-refused",
    ),
    (
        Status.UNREACHABLE,
        "ssh: Could not resolve hostname no.such.host.invalid: Name or service not known",
        "address-not-resolved",
    ),
    (
        Status.UNREACHABLE,
        "ssh: connect to host 10.0.0.99 port 22: No route to host",
        "host-unreachable",
    ),
    (
        Status.UNREACHABLE,
        "bash: line 1: /usr/bin/python3.99: No such file or directory",
        "python-missing",
    ),
    (Status.FAILED, "The module interpreter '/usr/bin/python3.99' was not found.", "python-missing"),
    (Status.UNREACHABLE, "no message was given", "python-unusable"),
    (
        Status.FAILED,
        "Module result deserialization failed: No start of json char found",
        "python-unusable",
    ),
    (Status.FAILED, f"{DIED}SyntaxError: invalid syntax (basic.py:9)", "python-unusable"),
    (Status.FAILED, f"{DIED}PermissionError: [Errno 13] Permission denied: '/home/eve'", "module-died"),
    (
        Status.FAILED,
        f"{DIED}OSError: [Errno 28] No space left on device: '/x' (a.py:3)",
        "host-disk-full",
    ),
    (Status.FAILED, f"{DIED}OSError: [Errno 122] Disk quota exceeded (a.py:3)", "host-disk-full"),
    (
        Status.FAILED,
        f"{DIED}OSError: [Errno 30] Read-only file system: '/x' (a.py:3)",
        "host-disk-broken",
    ),
    (Status.FAILED, f"{DIED}OSError: [Errno 5] Input/output error (a.py:3)", "host-disk-broken"),
    (
        Status.FAILED,
        "Module result deserialization failed: No start of json char found\n/bin/sh: 1: sudo: not found",
        "sudo-missing",
    ),
    (
        Status.FAILED,
        "error occurred on host node1: Child start failed: [Errno 2] No such file or directory: 'sudo'. Comm",
        "sudo-missing",
    ),
    (Status.FAILED, "error occurred on host node1: sudo password is required", "sudo-password-needed"),
    (Status.FAILED, "Missing sudo password", "sudo-password-needed"),
    (Status.FAILED, "error occurred on host node1: sudo password is incorrect", "sudo-password-wrong"),
    (Status.FAILED, "Incorrect sudo password", "sudo-password-wrong"),
]


@pytest.mark.parametrize(("status", "message", "reference"), RECORDED)
def test_what_ansible_says_means_something(status: Status, message: str, reference: str) -> None:
    (finding,) = findings_of(result(message, status))
    assert (finding.where, finding.reference, finding.severity) == ("node1", reference, Severity.ERROR)


def test_hints_name_the_address_where_it_is_known() -> None:
    message = "SSH authentication is incorrect"
    assert findings_of(result(message, Status.UNREACHABLE))[0].hint.startswith("ssh -v node1;")
    assert findings_of(result(message, Status.UNREACHABLE), "10.0.0.1")[0].hint.startswith("ssh -v 10.0.0.1;")


def test_a_machine_that_was_installed_anew_is_led_to_what_lets_the_key_in() -> None:
    (finding,) = findings_of(result("SSH authentication is incorrect", Status.UNREACHABLE))
    assert "deploy bootstrap INVENTORY --limit node1" in finding.hint


def test_the_words_of_ssh_are_kept_where_nothing_better_is_known() -> None:
    (finding,) = findings_of(result("ssh: {odd} thing", Status.UNREACHABLE))
    assert finding.message == "ssh: {odd} thing"


@pytest.mark.parametrize(
    "message",
    [
        "fatal: Permission denied (publickey).",
        "no message was given",
        "bash: python3: command not found",
        "dpkg: error",
    ],
)
def test_a_failure_of_a_task_is_the_tasks_own(message: str) -> None:
    assert findings_of(result(message)) == ()
    assert findings_of(result("Missing sudo password", ignored=True)) == ()


ENTRY = {
    "severity": "warning",
    "reference": "memory-small",
    "message": "900\x1b[31m MiB",
    "hint": "more\nof it",
}


def test_the_answer_of_host_check() -> None:
    answer = {"findings": [ENTRY, {"reference": "x"}, "odd"], "checked": ["memory", "clo\x07ck"]}
    for status in (Status.OK, Status.FAILED):
        told = result("raw", status, answer=answer)
        assert findings_of(told) == (
            Finding("node1", "memory-small", "900 MiB", "more of it", Severity.WARNING),
            Finding("node1", "x", "", "", Severity.ERROR),
        )
        assert checked(told) == ("memory", "clock")


@pytest.mark.parametrize("answer", [None, {}, {"findings": None}, {"findings": {}, "checked": 3}])
def test_other_answers_are_no_findings(answer: object) -> None:
    assert findings_of(result(status=Status.OK, answer=answer)) == ()
    assert checked(result(status=Status.OK, answer=answer)) == ()


def test_refused_is_who_answered_and_is_not_fit() -> None:
    warned = result(status=Status.OK, answer={"findings": [ENTRY]})
    away = result("ssh: connect to host", Status.UNREACHABLE)
    ordinary = result("dpkg: error")
    died = result(f"{DIED}ValueError: x (y.py:3)")
    assert not is_refused([warned, away, ordinary, died])
    assert findings_of(died)[0].message == "t: the module ended with an exception: ValueError: x (y.py:3)"
    assert is_refused([warned, result("Missing sudo password")])
    assert with_findings([warned, away, ordinary]) == [warned, away]
