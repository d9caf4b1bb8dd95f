"""One lab and one cluster per Debian release, deployed once, led through its life by test after test."""

import os
import time
from collections import Counter
from collections.abc import Collection, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.cluster.aftermath import evidence, make_usable
from tests.cluster.lab_cluster import Cluster, booted
from tests.cluster.portal_lab import deployed

_RELEASE = os.environ.get("DEPLOY_RELEASE")
RELEASES = (_RELEASE,) if _RELEASE else ("trixie", "bookworm")
NODES = tuple(f"node{number + 1}" for number in range(int(os.environ.get("DEPLOY_CLUSTER_NODES", "2"))))
"""Of the clusters that files of tests share; most of those need two."""
LIFE = (
    "first_deployment",
    "dead_node",
    "status",
    "repair",
    "refused_starts",
    "runaway_jobs",
    "drift",
    "jobs",
    "update",
    "changes",
    "unreachable_hosts",
    "access",
    "containers",
)
"""The files of tests that share a cluster, in the order of its life.

A dead node is minutes of waiting, best while other clusters have work. With its last test, which had better
be short, a life's worker gets the next tests.
"""
FIRST = ("real_kernels", "real_power")
"""What begins before all others: nothing else has what users have, kernels of their own."""
PORTAL = ("portal_browser", "portal_break_in", "portal")
"""Those that share the cluster with the portal, in this order: the last changes how people log in."""
_MOST_FLAKY = 3
_NOT_RUN = "no time was left to begin it"
_FAILED = pytest.StashKey[frozenset[str]]()
_LIVING = pytest.StashKey[dict[str, ExitStack]]()
"""What ends the life of each of those clusters, by release."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--every-release` runs all tests on all releases; `--once-more` those that failed, on fresh labs."""
    parser.addoption("--every-release", action="store_true", help="deploy's own part on every release, too")
    parser.addoption(
        "--once-more",
        action="store_true",
        help="the few tests that failed last, after what they need; those that pass now are called flaky",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuses to call flaky what failed in many places."""
    if config.getoption("--once-more") and not hasattr(config, "workerinput"):
        failed = failed_before(config)
        if not may_be_chance(failed):
            pytest.exit(f"{len(failed)} tests failed: that is not chance", returncode=1)
        config.stash[_FAILED] = failed


def may_be_chance(failed: Collection[str]) -> bool:
    """Whether one cause may be behind it: few tests failed, or those of one file with its own cluster."""
    files = {name.partition("::")[0] for name in failed}
    alone = files - {f"tests/cluster/test_{name}.py" for name in (*LIFE, *PORTAL)}
    return 0 < len(failed) <= _MOST_FLAKY or len(files) == len(alone) == 1


def failed_before(config: pytest.Config) -> frozenset[str]:
    """The tests of clusters that failed the last time, as pytest keeps them."""
    assert config.cache
    kept = config.cache.get("cache/lastfailed", {})
    return frozenset(name for name in kept if name.startswith("tests/cluster/"))


def again(items: list[pytest.Item], failed: Collection[str]) -> list[pytest.Item]:
    """Tests that failed with the others of their files, and what their clusters begin with."""
    lives = {_life(item) for item in items if item.nodeid in failed}
    places = {(item.path.stem, _life(item)) for item in items if item.nodeid in failed}
    places |= {(f"test_{LIFE[0]}", release) for release in lives if release}
    return [item for item in items if (item.path.stem, _life(item)) in places]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begins no test of what a site may add after BEGIN_UNTIL, in seconds since the epoch."""
    if item.get_closest_marker("more") and time.time() > float(os.environ.get("BEGIN_UNTIL") or "inf"):
        pytest.skip(_NOT_RUN)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names what there was no time for, and what failed and passed when it was run once more."""
    for report in terminalreporter.getreports("skipped"):
        if _NOT_RUN in str(report.longrepr):
            terminalreporter.write_line(f"NOT RUN, {_NOT_RUN}: {report.nodeid}", yellow=True)
    passed = {report.nodeid for report in terminalreporter.getreports("passed") if report.when == "call"}
    for name in sorted(terminalreporter.config.stash.get(_FAILED, frozenset()) & passed):
        terminalreporter.write_line(f"FLAKY {name}: it failed, and passed on a fresh lab", yellow=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Brings the life of each cluster into order, and the clusters by what is worth most."""
    turns = _turns(items)
    items.sort(key=lambda item: (turns[_cluster_of(item.nodeid)], _place_in_life(item)))
    if not config.getoption("--every-release"):
        spared = [item for item in items if _is_on_another(item)]
        config.hook.pytest_deselected(items=spared)
        items[:] = [item for item in items if item not in spared]
    if config.getoption("--once-more"):
        chosen = again(items, failed_before(config))
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


def _turns(items: Collection[pytest.Item]) -> dict[str, int]:
    """By cluster when it begins: the long lives early, and what there may be no time for in turn.

    The hour of BEGIN_UNTIL decides who is first of those: it is the same in all of xdist's processes.
    """
    sizes = Counter(_cluster_of(item.nodeid) for item in items)
    lives = {_cluster_of(item.nodeid) for item in items if not item.get_closest_marker("more")}
    added = sorted(sizes.keys() - lives, key=lambda name: (-sizes[name], name))
    if added and (until := os.environ.get("BEGIN_UNTIL")):
        turn = int(float(until) / 3600) % len(added)
        added = added[turn:] + added[:turn]
    order = [*sorted(lives, key=lambda name: (-sizes[name], name)), *added]
    order.sort(key=lambda name: Path(name).stem.removeprefix("test_") not in FIRST)
    return {name: turn for turn, name in enumerate(order)}


def _cluster_of(nodeid: str) -> str:
    """What tests have a cluster in common: a release, the portal, or their file."""
    file, _, test = nodeid.partition("::")
    if Path(file).stem.removeprefix("test_") in PORTAL:
        return "portal"
    return next((release for release in RELEASES if release in test), file)


def _is_on_another(item: pytest.Item) -> bool:
    """Whether a test for one release, by default the first, is on another."""
    marker = item.get_closest_marker("one_release")
    chosen = next(iter(marker.args), RELEASES[0]) if marker else None
    return chosen in RELEASES and any(name in item.name for name in RELEASES if name != chosen)


def _life(item: pytest.Item) -> str:
    """The release of the cluster that a test shares with others, or "portal"; empty where it has its own."""
    return _place_in_life(item)[0]


def _place_in_life(item: pytest.Item) -> tuple[str, int]:
    name = item.path.stem.removeprefix("test_")
    if name in PORTAL:
        return ("portal", PORTAL.index(name))
    release = next((release for release in RELEASES if f"{release}" in item.name), "")
    return (release, LIFE.index(name)) if name in LIFE else ("", 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Removes a cluster after the last test of its life: a session is long, and machines are counted."""
    yield
    following = _place_in_life(nextitem)[0] if nextitem else ""
    living = item.config.stash.get(_LIVING, {})
    for release in {*living} - {following}:
        living.pop(release).close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failed test what its cluster says, and leaves a usable one to the next test."""
    report = yield
    used = getattr(item, "funcargs", {})
    made = used.get("cluster", used.get("portal"))
    if report.failed and isinstance(made, Cluster):
        with_jobs = item.get_closest_marker("shares_jobs") is not None
        said = (*evidence(made), *make_usable(made, with_jobs=with_jobs))
        report.sections.append(("the cluster", "\n".join(said)))
    return report


class _ByCluster(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that share a cluster run one after the other; others at the same time."""

    def _split_scope(self, nodeid: str) -> str:
        return _cluster_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByCluster:  # noqa: ANN401 - xdist's own
    """How `--numprocesses` hands out the tests: in our order, where its own would be by their number."""
    config.option.loadscopereorder = False
    return _ByCluster(config, log)


@pytest.fixture(scope="session", params=RELEASES)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Nodes with two simulated GPUs each, removed at the end in any case.

    Nothing is deployed yet where the tests of this session begin with the first deployment.
    """
    release = str(request.param)
    with ExitStack() as life:
        request.config.stash.setdefault(_LIVING, {})[release] = life
        made = life.enter_context(
            booted(release, tmp_path_factory, "--nodes", str(len(NODES)), "--gpus", "2", release=release)
        )
        begins = f"test_{LIFE[0]}"
        if not any(item.path.stem == begins and _life(item) == release for item in request.session.items):
            made.deploy()
        yield made


@pytest.fixture(scope="session")
def portal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """A cluster with a portal, removed after the last test of it."""
    with ExitStack() as life:
        made = life.enter_context(deployed(tmp_path_factory))
        request.config.stash.setdefault(_LIVING, {})["portal"] = life.pop_all()
    return made


@pytest.fixture(scope="module")
def scratch_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Machines on which nothing was deployed yet."""
    with booted("scratch", tmp_path_factory, "--nodes", "1", "--gpus", "0") as made:
        yield made


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests' runs do not become the last run of the person who tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.chdir(Path(__file__).parents[2])
        yield
