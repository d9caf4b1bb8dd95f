"""What watches the cluster: that it answers, reaches whom it should, and has nothing to tell; the ways in."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deploy.validate.answers import MONITORING
from deploy.validate.context import Context, each_host
from deploy.validate.monitoring_questions import watcher
from deploy.validate.result import Result, failed, not_applicable, not_measured, passed

Judge = Callable[[Context], Iterator[Result]]
Reply = Mapping[str, Any]
Target = Mapping[str, str]
_OK = 200
_THERE = frozenset({200, 301, 302, 303, 307, 308, 401, 403})
"""A page that asks who is there is there."""
_REFUSED = frozenset({401, 403})
_NOTICE = "info"
"""The severity of what nobody need act on."""
_SHOWN = 3


def _where_watched(part: str) -> Callable[[Judge], Judge]:
    """A check that says nothing of its own where there is no such part, or nobody could ask it."""

    def wrapped(judge: Judge) -> Judge:
        def judged(context: Context) -> Iterator[Result]:
            if not context.site.metrics:
                yield not_applicable("the cluster is not watched: slurm-metric has no host")
            elif context.answers.monitoring is None:
                yield _nobody_asked(context)
            elif not context.answers.monitoring.get(part):
                yield not_applicable("the site has no Grafana (grafana_source: none)")
            else:
                yield from judge(context)

        judged.__doc__ = judge.__doc__
        return judged

    return wrapped


def _nobody_asked(context: Context) -> Result:
    host = watcher(context.site).name
    silent = context.answers.silent.get((MONITORING, host), "the host was not asked")
    return not_measured(f"its host could not be asked: {silent}", host)


def _said(context: Context, part: str) -> Mapping[str, Any]:
    return dict((context.answers.monitoring or {})[part])


def _trouble(daemon: str, said: Mapping[str, Any], reply: Reply) -> str:
    """Why a reply is no answer."""
    if reply["code"] in _REFUSED:
        return f"{daemon} at {said['url']} wants a password: {reply['why']}"
    return f"{daemon} at {said['url']}: {reply['why']}"


def _unit_hint(context: Context, unit: str) -> str:
    return f"systemctl status {unit}; journalctl -u {unit} -e   (on {watcher(context.site).name})"


def _hint(context: Context, reply: Reply, role: str, unit: str) -> str:
    if reply["code"] in _REFUSED:
        return f"{role}_web wants one: say it in prometheus_scrape_settings, job {role} (docs/monitoring.md)"
    return _unit_hint(context, unit)


@_where_watched("prometheus")
def prometheus(context: Context) -> Iterator[Result]:
    """Prometheus answers, and works with the configuration that it was given last."""
    host, said = watcher(context.site).name, _said(context, "prometheus")
    ready, runtime = said["ready"], said["runtime"]
    if wrong := next((reply for reply in (ready, runtime) if reply["code"] != _OK), None):
        hint = _hint(context, wrong, "prometheus", "prometheus")
        yield failed(_trouble("Prometheus", said, wrong), host, hint=hint)
    elif runtime["data"] is None:
        yield not_measured(_trouble("Prometheus", said, runtime), host)
    elif not runtime["data"]["taken"]:
        yield failed(
            "Prometheus works with an earlier configuration: it did not take its last one",
            host,
            hint=f"promtool check config /etc/prometheus/prometheus.yml   (on {host})",
        )
    else:
        yield passed(f"answers at {said['url']}", host)


@_where_watched("prometheus")
def targets(context: Context) -> Iterator[Result]:
    """Prometheus asks all that it should, and all that it asks answer."""
    said = _said(context, "prometheus")
    if said["targets"]["data"] is None:
        yield not_measured(_trouble("Prometheus", said, said["targets"]), watcher(context.site).name)
        return
    asked: defaultdict[str, dict[str, Target]] = defaultdict(dict)
    for target in said["targets"]["data"]:
        known = asked[target["instance"]].get(target["job"])
        # A host may have several targets of a job; the one that fails speaks for them.
        if known is None or known["health"] == "up":
            asked[target["instance"]][target["job"]] = target
    for job, entries in context.targets.items():
        for name in (str(entry["labels"]["instance"]) for entry in entries):
            asked[name].setdefault(job, {"health": "missing", "error": "Prometheus does not ask it"})
    for name in sorted(asked.keys() - context.switched_off):
        yield _of_targets(context, name, asked[name])


def _of_targets(context: Context, name: str, jobs: Mapping[str, Target]) -> Result:
    """What the targets of a host, by job, say of it."""
    wrong = [
        f"job {job} is {target['health']}: {target['error']}"
        for job, target in sorted(jobs.items())
        if target["health"] not in {"up", "unknown"}
    ]
    if wrong:
        hint = f"systemctl status 'prometheus-*exporter*'   (on {name}); deploy cluster {context.inventory}"
        return failed("; ".join(wrong), name, hint=hint)
    if unknown := [job for job, target in sorted(jobs.items()) if target["health"] == "unknown"]:
        return not_measured(f"Prometheus has not asked it yet: job {', '.join(unknown)}", name)
    return passed(f"answers: {', '.join(sorted(jobs))}", name)


@_where_watched("prometheus")
def alerts(context: Context) -> Iterator[Result]:
    """No alert fires."""
    host, said = watcher(context.site).name, _said(context, "prometheus")
    if said["alerts"]["data"] is None:
        yield not_measured(_trouble("Prometheus", said, said["alerts"]), host)
        return
    may = context.thresholds.alerts_that_may_fire
    firing: defaultdict[str, list[str]] = defaultdict(list)
    names: set[str] = set()
    passed_over: set[str] = set()
    for alert in said["alerts"]["data"]:
        if alert["name"] in may or alert["severity"] == _NOTICE:
            passed_over.add(alert["name"])
            continue
        names.add(alert["name"])
        since = alert["since"][:16].replace("T", " ")
        firing[alert["instance"] or host].append(f"{alert['name']} since {since} UTC: {alert['summary']}")
    hint = "docs/alerts.md says of each what it means; one that may fire is named in validation.yml"
    for name, texts in sorted(firing.items()):
        more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
        yield failed("; ".join(texts[:_SHOWN]) + more, name, hint=hint)
    if not firing:
        beside = f"; passed over: {', '.join(sorted(passed_over))}" if passed_over else ""
        yield passed(f"none fires{beside}", host)


@_where_watched("alertmanager")
def alertmanager(context: Context) -> Iterator[Result]:
    """Alertmanager answers."""
    host, said = watcher(context.site).name, _said(context, "alertmanager")
    if said["ready"]["code"] == _OK:
        yield passed(f"answers at {said['url']}", host)
    else:
        hint = _hint(context, said["ready"], "alertmanager", "prometheus-alertmanager")
        yield failed(_trouble("Alertmanager", said, said["ready"]), host, hint=hint)


@_where_watched("grafana")
def grafana(context: Context) -> Iterator[Result]:
    """Grafana answers, and reaches Prometheus."""
    host, said = watcher(context.site).name, _said(context, "grafana")
    health, source = said["health"], said["source"]
    again = f"deploy cluster {context.inventory} --limit {host} --full"
    if health["code"] is None or health["data"] is None:
        yield failed(_trouble("Grafana", said, health), host, hint=_unit_hint(context, "grafana-server"))
    elif health["data"]["database"] != "ok":
        text = f"Grafana's own database is {health['data']['database']}"
        yield failed(text, host, hint=_unit_hint(context, "grafana-server"))
    elif source["code"] in _REFUSED:
        yield failed(f"Grafana does not let its admin in: {source['why']}", host, hint=again)
    elif source["code"] is None or source["data"] is None:
        yield failed(_trouble("Grafana's source of data", said, source), host, hint=again)
    elif source["code"] == _OK and source["data"]["status"] == "OK":
        yield passed(f"answers at {said['url']} and reaches Prometheus", host)
    else:
        why = source["data"]["message"] or source["why"]
        hint = f"prometheus_web, grafana_prometheus_settings; {_unit_hint(context, 'grafana-server')}"
        yield failed(f"Grafana does not reach Prometheus: {why}", host, hint=hint)


def portals(context: Context) -> Iterator[Result]:
    """Where people come in somebody answers: sshd of the login nodes, the pages of the monitoring."""
    said = context.answers.monitoring
    if said is None:
        yield _nobody_asked(context)
        return
    host = watcher(context.site).name
    wrong = {name: f"sshd: {why}" for name, why in said["doors"].items() if why}
    shut = [f"{page}: {reply['why']}" for page, reply in said["pages"].items() if reply["code"] not in _THERE]
    if shut:
        wrong[host] = "; ".join([*([wrong[host]] if host in wrong else []), *shut])
    names = list(dict.fromkeys([*said["doors"], *([host] if said["pages"] else [])]))
    yield from each_host(names, wrong, "answers", "ss -tln; nft list ruleset   (on {host})")
