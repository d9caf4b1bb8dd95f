"""promtool: the rules are valid, and every alert fires when it should and not otherwise."""

import subprocess
from pathlib import Path

import pytest
import yaml

from deploy.monitoring.alert import Chapter
from deploy.monitoring.alerts import CHAPTERS
from deploy.monitoring.rule_tests import test_file as rule_tests
from tests.integration.prometheus_programs import RULES, program


def promtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False
    )


def rules_of(chapter: Chapter) -> list[str]:
    return [str(path) for path in RULES if path.stem in {"recording", chapter.name}]


def test_rules_are_valid() -> None:
    answer = promtool("check", "rules", *RULES)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert len(RULES) == len(CHAPTERS) + 1


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_alerts_fire_when_they_should_and_not_otherwise(chapter: Chapter, tmp_path: Path) -> None:
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(rule_tests(chapter, rules_of(chapter))))
    answer = promtool("test", "rules", file)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def fires(name: str, minute: int, /, **labels: str) -> dict[str, object]:
    """That an alert fires at a minute once with these labels; without labels that it does not."""
    shown = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    by = f"by ({', '.join(sorted(labels))}) " if labels else ""
    return {
        "expr": f'count {by}(ALERTS{{alertname="{name}",alertstate="firing"}})',
        "eval_time": f"{minute}m",
        "exp_samples": [{"labels": f"{{{shown}}}", "value": 1}] if labels else [],
    }


def test_an_xid_that_comes_again_is_told_again_and_none_hides_another(tmp_path: Path) -> None:
    """DCGM keeps the last one for ever; its exporter counts those of the last five minutes."""
    last, count = "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT"
    gpu = 'instance="node1",job="gpu",gpu="0"'
    own, other = "GpuXidOfItsOwn", "GpuXid"
    test = {
        "interval": "1m",
        "input_series": [
            # 94 at minute 20 and at 320, 31 at 322; the node boots at 340.
            {"series": f"{last}{{{gpu}}}", "values": "0x19 94x301 31x17 _x9 0x250"},
            {"series": f"{count}{{{gpu}}}", "values": "0x19 _x6 0x293 _x25 0x250"},
            {"series": f'{count}{{{gpu},xid="94"}}', "values": "_x20 1x5 _x294 1x5 _x270"},
            {"series": f'{count}{{{gpu},xid="31"}}', "values": "_x322 1x5 _x270"},
        ],
        "promql_expr_test": [
            fires(own, 10),
            fires(own, 25, instance="node1", gpu="0", xid="94"),
            fires(own, 80, instance="node1", gpu="0", xid="94"),
            fires(own, 200),
            fires(own, 330, instance="node1", gpu="0", xid="94"),
            fires(other, 330, instance="node1", gpu="0", xid="31"),
            fires(own, 360),
            fires(other, 360),
        ],
    }
    rules = [str(path) for path in RULES if path.stem in {"recording", "gpus"}]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": [test]}))
    answer = promtool("test", "rules", file)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_an_alert_that_does_not_fire_is_noticed(tmp_path: Path) -> None:
    chapter = CHAPTERS[0]
    tests = dict(rule_tests(chapter, rules_of(chapter)))
    tests["tests"] = [{**tests["tests"][0], "input_series": [{"series": "up", "values": "1x60"}]}]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(tests))
    assert promtool("test", "rules", file).returncode != 0


_NFS = 'device="ctl1:/home",fstype="nfs4",mountpoint="/home"'
_SSHFS = 'device="other:/data",fstype="fuse.sshfs",mountpoint="/home/alice/data"'
_CLOSED = 'device="other:/x",fstype="nfs4",mountpoint="/home/alice/x",device_error="permission denied"'
_ROOT = 'instance="node1",device="/dev/sda1",fstype="ext4",mountpoint="/"'
_FLAPS = 'instance="node1",job="node",name="slurmd.service",type="simple"'
_ACTIVATING = "1 1 1 0 1 1 1 1 0 1 1 1 1 1 0 1 1 1 1 0 1 1 1 1 1 0 1 1 1 1 0 1 1 1 0 1 1 1 1 1 0 1 1 1 1 0"
_ASKED = 'slurm_exporter_collect_success{instance="ctl1",job="slurm",command='


def _disk(instance: str, place: str, free: int) -> dict[str, str]:
    labels = f'{{instance="{instance}",job="node",{place}}}'
    return {
        f"node_filesystem_avail_bytes{labels}": f"{free}x60",
        f"node_filesystem_size_bytes{labels}": "100x60",
    }


def _shared(instance: str, free: str, size: str) -> dict[str, str]:
    labels = f'{{instance="{instance}",job="node",{_NFS}}}'
    return {f"node_filesystem_avail_bytes{labels}": free, f"node_filesystem_size_bytes{labels}": size}


@pytest.mark.parametrize(
    ("chapter", "series", "expected"),
    [
        pytest.param(
            "hosts",
            _disk("node1", _NFS, 4) | _disk("node2", _NFS, 4),
            [fires("DiskFull", 30, device="ctl1:/home", mountpoint="/home")],
            id="what is shared is told once",
        ),
        pytest.param(
            "hosts",
            _disk("node1", _SSHFS, 0),
            [fires("DiskFull", 30)],
            id="what a user mounted in his home may be full",
        ),
        pytest.param(
            "hosts",
            {
                f'node_filesystem_device_error{{instance="node1",{place}}}': "1x60"
                for place in (_SSHFS, _CLOSED)
            },
            [fires("NetworkMountStale", 30)],
            id="what the exporter may not enter is not stale",
        ),
        pytest.param(
            "hosts",
            # It is off for three hours, and comes back as it was; then somebody repairs it.
            {
                f"node_filesystem_readonly{{{_ROOT}}}": "0x5 _x180 1x200 0x200",
                'up{instance="node1",job="node"}': "1x5 0x180 1x400",
            },
            [
                fires("FilesystemReadOnly", 184),
                fires("FilesystemReadOnly", 220, instance="node1", mountpoint="/"),
                fires("FilesystemReadOnly", 380, instance="node1", mountpoint="/"),
                fires("FilesystemReadOnly", 500),
            ],
            id="what became read-only stays so across a start",
        ),
        pytest.param(
            "hosts",
            {
                'node_infiniband_state_id{instance="node1",device="mlx5_0",port="1"}': "4x5 1x200",
                'node_infiniband_state_id{instance="node1",device="mlx5_0",port="2"}': "1x205",
                'up{instance="node1",job="node"}': "1x205",
            },
            [fires("InfinibandPortDown", 190, instance="node1", device="mlx5_0", port="1")],
            id="a port that nobody connected is not down",
        ),
        pytest.param(
            "hosts",
            {f'node_systemd_unit_state{{{_FLAPS},state="activating"}}': _ACTIVATING},
            [fires("UnitDiesAgainAndAgain", 45, instance="node1", name="slurmd.service")],
            id="a service that dies at once passes for active at times",
        ),
        pytest.param(
            "hosts",
            {f'node_systemd_unit_state{{{_FLAPS},state="activating"}}': "_x20 1x5 0x60"},
            [fires("UnitDiesAgainAndAgain", minute) for minute in range(20, 60)],
            id="a service that is slow at boot is up then",
        ),
        pytest.param(
            "hosts",
            _shared("login1", "25x300", "100x300")
            | _shared("node1", "_x100 30 29 28 27 26 25x30", "_x100 100x40")
            | _shared("node2", "_x125 30 29 28 27 26 25x30", "_x125 100x40"),
            [fires("DiskFillingUp", minute) for minute in range(100, 160, 5)],
            id="who has just booted does not know what fills up",
        ),
        pytest.param(
            "slurm",
            {f'node_systemd_unit_state{{{_FLAPS},state="active"}}': "_x20 0x4 1x60"},
            [fires("SlurmDaemonNotRunning", minute) for minute in range(20, 40)],
            id="a daemon of Slurm that is slow at boot runs",
        ),
        pytest.param(
            "slurm",
            {f'node_systemd_unit_state{{{_FLAPS},state="active"}}': "1x10 0 1x40"},
            [fires("SlurmDaemonNotRunning", minute) for minute in range(8, 20)],
            id="a daemon of Slurm that was started anew runs",
        ),
        pytest.param(
            "hosts",
            {'node_systemd_unit_state{instance="login1",name="user@2001.service",state="failed"}': "1x60"},
            [fires("UnitFailed", 30)],
            id="what a user killed of his own has not failed",
        ),
        pytest.param(
            "slurm",
            {f'{_ASKED}"{name}"}}': "1x5 0x60" for name in ("controllers", "nodes")},
            [fires("SlurmControllerDown", 30, controller="ctl1")],
            id="a controller that hangs is down",
        ),
        pytest.param(
            "slurm",
            {f'{_ASKED}"controllers"}}': "1x5 0x60", f'{_ASKED}"nodes"}}': "1x65"},
            [fires("SlurmControllerDown", 30)],
            id="where another controller answers it is not",
        ),
    ],
)
def test_what_alerts_tell_apart(
    chapter: str, series: dict[str, str], expected: list[dict[str, object]], tmp_path: Path
) -> None:
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": expected,
    }
    rules = [str(path) for path in RULES if path.stem in {"recording", chapter}]
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": [test]}))
    answer = promtool("test", "rules", file)
    assert answer.returncode == 0, answer.stdout + answer.stderr
