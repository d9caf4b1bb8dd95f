"""What a user of the portal may ask for, and that nothing else comes to sbatch."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.roles.loading import load_module

PLACE = "roles/slurm_portal/files/portal"
choices = load_module(f"{PLACE}/portal_choices.py")
LIMITS: dict[str, Any] = {
    "partitions": [],
    "environments": [{"name": "plain", "title": "Plain", "modules": []}],
    "max_gpus": 2,
    "max_cpus": 8,
    "max_memory_gb": 16,
    "max_minutes": 600,
    "defaults": {},
}
PARTITIONS = """\
PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL MaxTime=1-00:00:00 State=UP
PartitionName=short AllowAccounts=laser AllowQos=quick MaxTime=00:30:00 State=UP
PartitionName=theirs AllowAccounts=others AllowQos=ALL MaxTime=UNLIMITED State=UP
PartitionName=denied DenyAccounts=laser,physics AllowQos=ALL MaxTime=UNLIMITED State=UP
PartitionName=off AllowAccounts=ALL AllowQos=ALL MaxTime=UNLIMITED State=DOWN
"""
GRES = """\
gpu* gpu:a100:4(S:0-1) node1
gpu* gpu:a100:2,gpu:h100:1 node2
short (null) node3
theirs gpu:8 node4
"""
ASSOCIATIONS = "physics||normal,high|normal\nlaser||quick|\n"
FORM = {
    "partition": "gpu",
    "account": "physics",
    "qos": "",
    "gpu_type": "a100",
    "gpus": "1",
    "cpus": "2",
    "memory_gb": "4",
    "minutes": "60",
    "environment": "plain",
}


def offers(**limits: object) -> Any:  # noqa: ANN401 - of a module that is loaded here
    return choices.offers(PARTITIONS, GRES, ASSOCIATIONS, LIMITS | limits)


def test_what_slurm_says_is_on_offer() -> None:
    may = offers()
    assert list(may.partitions) == ["gpu", "short"]
    assert may.partitions["gpu"].gpus == {"a100": 4, "h100": 1}
    assert may.partitions["gpu"].minutes == 24 * 60
    assert may.partitions["short"].minutes == 30
    assert choices.accounts_of(may.partitions["short"], may.accounts) == ["laser"]
    assert may.accounts == {"physics": ("normal", "high"), "laser": ("quick",)}
    assert may.nodes == ("node1", "node2", "node3")


@pytest.mark.parametrize(
    "image",
    [
        "",
        "x",
        "../x.sqsh",
        "/home/her/../../etc/shadow",
        "/images//x.sqsh",
        "docker://registry#x",
        "./x.sqsh",
        "-x",
        "/x y",
        "/x;id",
        "/x$(id)",
        "/x\n#SBATCH --uid=0",
        "/x,/etc:/etc",
        "/x\x00",
        "/" + "x" * 600,
        7,
        None,
    ],
)
def test_an_image_of_ones_own_is_a_whole_path_or_an_address(image: object) -> None:
    own = LIMITS | {"own_images": True}
    form = FORM | {"environment": "own:image", "image": image}
    with pytest.raises(choices.NotAllowedError, match="Name the image as srun"):
        choices.chosen(form, offers(), own)
    with pytest.raises(choices.NotAllowedError, match="no environment"):
        choices.chosen(FORM | {"environment": "own:image", "image": "/images/x.sqsh"}, offers(), LIMITS)
    with pytest.raises(choices.NotAllowedError, match="for images of your own alone"):
        choices.chosen(FORM | {"image": "/images/x.sqsh"}, offers(), own)


@pytest.mark.parametrize(
    "image", ["/images/x.sqsh", "ubuntu:24.04", "nvcr.io#nvidia/pytorch:25.01-py3", "a@b/c"]
)
def test_other_images_are_taken_where_the_site_allows_them(image: str) -> None:
    form = FORM | {"environment": "own:image", "image": image}
    found = choices.chosen(form, offers(), LIMITS | {"own_images": True})
    assert (found.environment, found.image) == ("own:image", image)


def test_the_site_may_offer_fewer_partitions() -> None:
    assert list(offers(partitions=["short", "theirs"]).partitions) == ["short"]


def test_an_association_for_one_partition_is_for_no_other() -> None:
    may = choices.offers(PARTITIONS, GRES, "physics|gpu|normal|normal\n", LIMITS)
    assert list(may.partitions) == ["gpu"]
    assert choices.offers(PARTITIONS, GRES, "", LIMITS).partitions == {}


def test_a_form_becomes_words_of_sbatch() -> None:
    found = choices.chosen(FORM, offers(), LIMITS)
    assert found.arguments() == [
        "--partition=gpu",
        "--account=physics",
        "--gres=gpu:a100:1",
        "--cpus-per-task=2",
        "--mem=4G",
        "--time=60",
    ]
    without = choices.chosen(FORM | {"gpus": "0", "qos": "high"}, offers(), LIMITS)
    assert "--qos=high" in without.arguments()
    assert not [word for word in without.arguments() if "gres" in word]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"partition": "theirs"}, "may not use the partition 'theirs'"),
        ({"partition": "off"}, "may not use the partition"),
        ({"partition": "gpu --uid=0"}, "has to be a name"),
        ({"partition": "gpu\n#SBATCH --uid=0"}, "has to be a name"),
        ({"partition": "-p"}, "has to be a name"),
        ({"account": "others"}, "may not charge 'others'"),
        ({"account": "physics,others"}, "has to be a name"),
        ({"account": "$(id)"}, "has to be a name"),
        ({"qos": "urgent"}, "may not use the QOS 'urgent'"),
        ({"partition": "short", "account": "laser", "qos": "normal", "gpus": "0"}, "may not use the QOS"),
        ({"gpu_type": "h100", "gpus": "2"}, "has 1 GPUs of h100"),
        ({"gpu_type": "v100"}, "no GPUs of type 'v100'"),
        ({"gpus": "3"}, "Ask for 0 to 2 GPUs"),
        ({"gpus": "-1"}, "has to be a name or a number"),
        ({"gpus": "1e3"}, "Ask for 0 to 2 GPUs"),
        ({"cpus": "9"}, "Ask for 1 to 8 CPUs"),
        ({"cpus": "0"}, "Ask for 1 to 8 CPUs"),
        ({"memory_gb": "17"}, "Ask for 1 to 16 GB"),
        ({"memory_gb": "4G"}, "Ask for 1 to 16 GB"),
        ({"minutes": "601"}, "Ask for 1 to 600 minutes"),
        ({"minutes": "٣٠"}, "has to be a name or a number"),
        ({"environment": "other"}, "no environment 'other'"),
        ({"environment": "../../x"}, "has to be a name"),
        ({"constraint": "x"}, "no field 'constraint'"),
        ({"partition": ["gpu"]}, "has to be one word"),
        ({"cpus": True}, "has to be one word"),
    ],
)
def test_nothing_else_passes(change: dict[str, object], why: str) -> None:
    with pytest.raises(choices.NotAllowedError, match=why.replace("$", r"\$").replace("(", r"\(")):
        choices.chosen(FORM | change, offers(), LIMITS)


def test_a_user_without_account_reads_whom_to_ask() -> None:
    nothing = choices.offers(PARTITIONS, GRES, "", LIMITS)
    with pytest.raises(choices.NotAllowedError, match="your account in Slurm is missing"):
        choices.chosen(FORM, nothing, LIMITS)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(choices.FIELDS), st.text() | st.integers() | st.none()))
def test_whatever_is_posted_words_stay_words(change: dict[str, object]) -> None:
    try:
        found = choices.chosen(FORM | change, offers(), LIMITS)
    except choices.NotAllowedError:
        return
    for word in found.arguments():
        assert word.startswith("--")
        assert not set(word) & set(" \t\r\n;|&$`'\"\\%<>()")
    assert found.partition in {"gpu", "short"}
    assert found.account in {"physics", "laser"}
