"""The users' own commands of the example sites: their schema, and that every site has what they ask for."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from deploy.errors import DeployError
from deploy.site.accounting import declared_members
from deploy.site.inventory import Site, read_site
from deploy.site.user_commands import FILE_NAME, Command, check_sizes, read_user_commands
from tests.unit.site.user_commands import (
    SITES,
    Request,
    gpu_types,
    gpus_asked,
    known_modules,
    modules,
    needed,
    partitions,
    read_commands,
    requests,
    texts,
)

_NAMES = sorted(path.parent.name for path in SITES.glob(f"*/{FILE_NAME}"))
_SMALL = {"cpus": 1, "memory_mb": 1024}
"""What a node of a rehearsal always has; a command that asks for more says so in ``needs``."""

pytestmark = pytest.mark.usefixtures("quick_reading")


@pytest.fixture(params=_NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def commands(name: str) -> list[Command]:
    content: list[Command] = read_commands(name)["commands"]
    return content


@pytest.fixture
def site(name: str) -> Site:
    return read_site(SITES / name / "inventory.ini")


def _asked(commands: list[Command], kind: str) -> Iterator[tuple[str, str]]:
    for command in commands:
        for request in requests(command):
            if kind in request.asked:
                yield command["id"], request.asked[kind]


def test_every_site_has_commands() -> None:
    assert sorted(path.parent.name for path in SITES.glob("*/inventory.ini")) == _NAMES


_HEAD = """\
guide: A guide
shared: [/home]
commands:
"""
_GOOD = """\
  - id: one
    guide: {file: guide.md, heading: One}
    wording: verbatim
    user: alice
    run: sinfo
    expect: {output: up}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", ":1: it is not YAML"),
        ("guide: x\nshared: [/home]\n", ":1: $: 'commands' is a required property"),
        (
            _HEAD + _GOOD.replace("user: alice", "usr: alice"),
            ":4: commands[0]: 'user' is a required property",
        ),
        (_HEAD + _GOOD.replace("id: one", "id: One"), ":4: commands[0].id: 'One' does not match"),
        (_HEAD + _GOOD.replace("output: up", "exit: 300"), ":9: commands[0].expect.exit: 300 is greater"),
        (
            _HEAD + _GOOD + "    in_containers: {replaced: a stand-in, expect: {output: '('}}\n",
            ":10: not a regular expression: missing )",
        ),
        (
            _HEAD + _GOOD + "    in_containers: {replaced: it}\n",
            ":10: commands[0].in_containers.replaced: 'it'",
        ),
        (_HEAD + _GOOD + "sizes: [{group: x}]\n", ":10: sizes[0]: 'cpus' is a required property"),
        (_HEAD + _GOOD + _GOOD, ":4: another command is called one, too"),
        (_HEAD + _GOOD.replace("output: up", 'output: "("'), ":9: not a regular expression: missing )"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_text(text)
    with pytest.raises(DeployError) as caught:
        read_user_commands(path)
    first = str(caught.value.findings[0])
    assert f"{FILE_NAME}{said}" in first
    assert "[commands-invalid]\n  -> " in first


def test_a_file_that_is_right_is_read(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_text(_HEAD + _GOOD)
    assert read_user_commands(path)["commands"][0]["run"] == "sinfo"


def test_a_site_without_commands(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="commands-not-found"):
        read_user_commands(tmp_path / FILE_NAME)


def test_something_is_expected_of_what_can_run(commands: list[Command]) -> None:
    assert [c["id"] for c in commands if not c["expect"] and "cannot_run_here" not in c] == []


def test_what_is_typed_is_not_taken_for_the_outcome(commands: list[Command]) -> None:
    """A terminal shows it, too."""
    echoes = {
        c["id"]: "\n".join(f"alice@login:~$ {line}" for line in c["input"].splitlines())
        for c in commands
        if "input" in c and "cannot_run_here" not in c
    }
    patterns = {c["id"]: c["expect"].get("output") for c in commands}
    assert [
        name
        for name, text in echoes.items()
        if patterns[name] and re.search(patterns[name], text, re.MULTILINE)
    ] == []


def test_sizes_are_those_of_groups(name: str, site: Site) -> None:
    content = read_commands(name)
    check_sizes(content, site, SITES / name / FILE_NAME)
    nodes = {node.name for node in site.nodes}
    assert all(nodes & {*site.groups[size["group"]]} for size in content.get("sizes", ()))


def test_sizes_of_no_group_are_refused(site: Site) -> None:
    sizes = [{"group": "nowhere", "cpus": 1, "memory_mb": 1}]
    with pytest.raises(DeployError, match=r"no group nowhere .*\[commands-invalid\]"):
        check_sizes({"sizes": sizes}, site, Path(FILE_NAME))


def test_images_by_their_addresses_are_served(commands: list[Command], name: str) -> None:
    served = {
        f"{image['image']}:{tag}"
        for image in read_commands(name).get("served_images", ())
        for tag in image["tags"]
    }
    typed = "\n".join(text for c in commands if "cannot_run_here" not in c for text in texts(c))
    named = {image.replace("#", "/") for image in re.findall(r"nvcr\.io[#/][\w./-]+:[\w.-]+", typed)}
    assert named <= served


def test_most_commands_can_run(commands: list[Command]) -> None:
    assert sum("cannot_run_here" in command for command in commands) <= len(commands) / 2


def test_users_may_log_in_and_submit(commands: list[Command], site: Site) -> None:
    users = {command["user"] for command in commands}
    variables = site.controller.variables
    assert users <= {account["name"] for account in variables["users_accounts"]}
    assert users <= {name for names in declared_members(site.controller).values() for name in names}


def test_partitions_exist(commands: list[Command], site: Site) -> None:
    known = partitions(site)
    assert [asked for asked in _asked(commands, "partition") if asked[1] not in known] == []


def test_accounts_exist(commands: list[Command], site: Site) -> None:
    known = {account["name"] for account in site.controller.variables["slurm_accounts_accounts"]}
    assert [asked for asked in _asked(commands, "account") if asked[1] not in known] == []


def test_qos_exist(commands: list[Command], site: Site) -> None:
    known = {"normal", *(qos["name"] for qos in site.controller.value("slurm_accounts_qos"))}
    assert [asked for asked in _asked(commands, "qos") if asked[1] not in known] == []


def test_constraints_exist(commands: list[Command], site: Site) -> None:
    known = {feature for node in site.nodes for feature in node.value("slurmd_features")}
    wanted = [
        (c, word) for c, text in _asked(commands, "constraint") for word in re.findall(r"[\w.-]+", text)
    ]
    assert [asked for asked in wanted if asked[1] not in known] == []


def test_nodes_exist(commands: list[Command], site: Site) -> None:
    known = {node.name for node in site.nodes}
    named = [
        (c, node)
        for c, text in _asked(commands, "nodelist")
        for node in NodeSet(text, resolver=RESOLVER_NOGROUP)
    ]
    assert [asked for asked in named if asked[1] not in known] == []


def test_modules_exist(commands: list[Command], site: Site) -> None:
    known = known_modules(site)
    wanted = [(command["id"], module) for command in commands for module in modules(command)]
    assert [asked for asked in wanted if asked[1] not in known] == []


def test_gpus_exist(commands: list[Command], site: Site) -> None:
    members = partitions(site)
    for command in commands:
        for request in requests(command):
            for kind, number in gpus_asked(request):
                declared = [gpu_types(node) for node in members[request.asked.get("partition", "")]]
                fitting = [
                    has is None or (has.get(kind, 0) if kind else sum(has.values())) >= number
                    for has in declared
                ]
                assert any(fitting), f"{command['id']}: {kind or 'gpu'}:{number}"


def test_what_is_needed_is_said(commands: list[Command], site: Site) -> None:
    members = partitions(site)
    for command in commands:
        for request in requests(command):
            has = {**_SMALL, "nodes": len(members[request.asked.get("partition", "")])}
            more = {kind: number for kind, number in needed(request).items() if number > has[kind]}
            said = {kind: command.get("needs", {}).get(kind, 0) for kind in more}
            assert said == more, command["id"]


def test_containers_are_asked_for_where_they_are(commands: list[Command], site: Site) -> None:
    if any("images" in command for command in commands):
        assert site.containers


def test_requests_are_understood() -> None:
    script = (
        "#!/bin/bash\n#SBATCH -p big  # Partition\n#SBATCH --gres=gpu:a100:2\n"
        "mkdir -p logs\nmodule load a b/1 # c\n"
    )
    command = {
        "run": "x=$(sbatch --parsable -p small job.sh)\nsrun -N 2 \\\n --mem=2G bash -c 'x | y'; sinfo -s",
        "input": "# srun -p none\n",
        "files": {"job.sh": script},
    }
    assert list(requests(command)) == [
        Request("sbatch", {"partition": "small"}),
        Request("srun", {"nodes": "2", "memory": "2G"}),
        Request("sinfo", {}),
        Request("sbatch", {"partition": "big", "gres": "gpu:a100:2"}),
    ]
    assert list(modules(command)) == ["a", "b/1"]
    assert needed(Request("srun", {"nodes": "2", "memory": "2G", "cpus": "3", "tasks": "4"})) == {
        "nodes": 2,
        "cpus": 12,
        "memory_mb": 2048,
    }
    assert list(gpus_asked(Request("srun", {"gres": "gpu:2", "gpus": "a40:1"}))) == [("", 2), ("a40", 1)]
