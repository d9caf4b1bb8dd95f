import json

from deploy.errors import ExitCode, Finding, Severity
from deploy.judge.findings import findings_of
from deploy.judge.site_check import SiteCheck, Verdict, check_hosts
from deploy.run.events import HostResult, Status
from deploy.show.check import as_json, lines

ADDRESSES = {"ctl1": "10.0.0.1", "node1": "10.0.0.2", "node2": "10.0.0.3", "node3": "10.0.0.4"}
CHECKED = ["Debian 13.7", "clock"]


def result(host: str, status: Status, *findings: dict[str, str], message: str = "") -> HostResult:
    answer = {"findings": list(findings), "checked": CHECKED} if status is not Status.UNREACHABLE else None
    return HostResult(1.0, host, "P", "", "t", "", status, 1.0, message, answer=answer)


def found(reference: str, severity: str = "error") -> dict[str, str]:
    return {"severity": severity, "reference": reference, "message": f"{reference}!", "hint": "do"}


def check(*results: HostResult, site: tuple[Finding, ...] = ()) -> SiteCheck:
    return SiteCheck(check_hosts({result.host: result for result in results}, ADDRESSES), site)


FIT = [result(host, Status.OK) for host in ADDRESSES]
UNFIT = result("node1", Status.FAILED, found("disk-full"), found("memory-small", "warning"))
AWAY = result("node2", Status.UNREACHABLE, message="SSH authentication is incorrect")
BAD_SITE = Finding("x:1", "unknown-variable", "no", "did you mean")
WARNING = Finding("x:2", "odd", "hm", "look", Severity.WARNING)


def test_exit_codes() -> None:
    assert check(*FIT).exit_code is ExitCode.OK
    assert check(*FIT, result("node1", Status.OK, found("x", "warning"))).exit_code is ExitCode.OK
    assert check(*FIT, AWAY).exit_code is ExitCode.UNREACHABLE
    assert check(*FIT, AWAY, UNFIT).exit_code is ExitCode.FAILED
    assert check(*FIT, UNFIT, site=(BAD_SITE,)).exit_code is ExitCode.BAD_INPUT
    assert check(*FIT, site=(WARNING,)).exit_code is ExitCode.OK


def test_a_host_without_an_answer_and_one_that_broke_are_not_fit() -> None:
    ctl1, node1, node2, _ = check(FIT[0], result("node1", Status.FAILED, message="odd"), FIT[3]).hosts
    assert (ctl1.verdict, node1.verdict, node2.verdict) == (Verdict.FIT, Verdict.UNFIT, Verdict.UNFIT)
    assert node1.findings[0].message == "odd"
    assert node2.findings[0].reference == "check-failed"


def test_errors_come_first_and_the_same_on_several_hosts_is_said_once() -> None:
    again = result("node3", Status.FAILED, found("disk-full"))
    assert list(lines(check(*FIT, UNFIT, AWAY, again, site=(WARNING,)))) == [
        "node[1,3]: disk-full! [disk-full]",
        "  -> do",
        "node2: its SSH server accepts neither the key nor the password of this user [ssh-login-refused]",
        f"  -> {findings_of(AWAY, '10.0.0.3')[0].hint}",
        "node1: warning: memory-small! [memory-small]",
        "  -> do",
        "x:2: warning: hm [odd]",
        "  -> look",
        "",
        "ctl1: checked: Debian 13.7, clock",
        "4 hosts: 2 unfit, 1 unreachable, 1 fit (3 errors, 2 warnings); nothing was changed",
    ]


def test_a_fit_site_says_what_was_checked() -> None:
    assert list(lines(check(*FIT))) == [
        "ctl1,node[1-3]: checked: Debian 13.7, clock",
        "4 hosts: 4 fit (0 errors, 0 warnings); nothing was changed",
    ]


def test_places_that_are_no_host_names_are_listed() -> None:
    other = Finding("y[:3", "odd", "hm", "look", Severity.WARNING)
    assert next(iter(lines(check(*FIT, site=(WARNING, other))))).startswith("x:2, y[:3: warning: hm")


def test_data() -> None:
    data = json.loads(json.dumps(as_json(check(*FIT, UNFIT, AWAY))))
    assert data["exit_code"] == 1
    assert data["findings"][0] == {
        "where": "node1",
        "reference": "disk-full",
        "message": "disk-full!",
        "hint": "do",
        "severity": "error",
    }
    assert data["hosts"]["node1"] == {"verdict": "unfit", "checked": CHECKED}
    assert data["hosts"]["node2"] == {"verdict": "unreachable", "checked": []}
