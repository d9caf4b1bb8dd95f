import pytest
import yaml

from tests.unit.roles.loading import ROOT
from tests.unit.roles.slurm_accounting.modules import ROLE, Loaded, look, values

SPELLINGS = [
    (values.limit, "90", "01:30:00"),
    (values.limit, "90:30", "01:31:00"),
    (values.limit, "24:00:00", "1-00:00:00"),
    (values.limit, "1-0", "1-00:00:00"),
    (values.limit, "1-2:3", "1-02:03:00"),
    (values.limit, "365-00:00:30", "365-00:01:00"),
    (values.limit, "UNLIMITED", ""),
    (values.duration, "90", "01:30:00"),
    (values.duration, "00:10:05", "00:10:05"),
    (values.grace, "60", "60"),
    (values.grace, "00:01:00", "60"),
    (values.grace, "1-00:00:00", "86400"),
    (values.tres, "mem=8G,cpu=4", "cpu=4,mem=8192M"),
    (values.tres, "cpu=4,mem=1.50G", "cpu=4,mem=1536M"),
    (values.tres, "mem=1536", "mem=1536M"),
    (values.tres, "mem=2T", "mem=2097152M"),
    (values.tres, "mem=8GB", "mem=8192M"),
    (values.tres, "fs/disk=10G", "fs/disk=10737418240"),
    (values.tres, "GRES/gpu:a100=2,cpu=-1", "gres/gpu:a100=2"),
    (values.names, "normal,High,,normal", "high,normal"),
    (values.flags, "NoDecay,DenyOnLimit", "denyonlimit,nodecay"),
    (values.prose, 'It\'s "Big"', "it`s `big`"),
    (values.integer, "007", "7"),
    (values.decimal, "0.3333333", "0.333333"),
    (values.word, "Operator", "operator"),
]


@pytest.mark.parametrize(("spell", "text", "expected"), SPELLINGS)
def test_one_spelling(spell: Loaded, text: str, expected: str) -> None:
    assert spell(text) == expected


@pytest.mark.parametrize(
    ("spell", "text"),
    [
        (values.limit, "1d"),
        (values.limit, "1:2:3:4"),
        (values.limit, "-5"),
        (values.tres, "cpu"),
        (values.tres, "cpu=foo"),
        (values.tres, "=4"),
        (values.tres, "cpu=4,"),
        (values.integer, "many"),
        (values.decimal, "half"),
        (values.prose, "a|b"),
        (values.prose, "a\nb"),
    ],
)
def test_what_slurm_could_not_read(spell: Loaded, text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|invalid|could not"):
        spell(text)


def field(fields: Loaded, option: str) -> Loaded:
    return next(field for field in fields if field.option == option)


@pytest.mark.parametrize("reset", ["", "-1", -1, []])
def test_resets(reset: Loaded) -> None:
    assert field(values.QOS, "usage_factor").read(reset) == "1.000000"
    assert field(values.QOS, "max_wall").read(reset) == ""
    assert field(values.QOS, "preempt_mode").read(reset) == "cluster"
    assert field(values.ASSOCIATION, "fairshare").read(reset) == "1"
    assert field(values.ASSOCIATION, "qos").read(reset) == ""


@pytest.mark.parametrize(
    ("fields", "option", "wanted", "present", "word"),
    [
        (values.ASSOCIATION, "grp_tres", "cpu=4", "", "GrpTRES=cpu=4"),
        (values.ASSOCIATION, "grp_tres", "cpu=4", "cpu=8,mem=5M", "GrpTRES=cpu=4,mem=-1"),
        (values.ASSOCIATION, "grp_tres", "", "cpu=8,mem=5M", "GrpTRES=cpu=-1,mem=-1"),
        (values.ASSOCIATION, "max_jobs", "", "5", "MaxJobs=-1"),
        (values.ASSOCIATION, "max_jobs", "0", "5", "MaxJobs=0"),
        (values.ASSOCIATION, "qos", "", "high", "QOS="),
        (values.ASSOCIATION, "default_qos", "", "high", "DefaultQOS=-1"),
        (values.QOS, "preempt", "", "high", "Preempt="),
        (values.QOS, "flags", "", "nodecay", "Flags=-1"),
        (values.QOS, "priority", "0", "5", "Priority=0"),
    ],
)
def test_words(fields: Loaded, option: str, wanted: str, present: str, word: str) -> None:
    assert field(fields, option).word(wanted, present) == word


def test_what_cannot_be_read_is_heard_as_it_is() -> None:
    assert field(values.QOS, "description").heard("a|b") == "a|b"
    assert field(values.QOS, "max_wall").heard("1-00:00:00") == "1-00:00:00"


PROJECT = {"name", "parent", "members", "managers", "groups", "budget"}


@pytest.mark.parametrize(
    ("variable", "fields", "others"),
    [
        ("accounts", [*values.ACCOUNT, *values.ASSOCIATION], PROJECT),
        ("users", [*values.USER, *values.ASSOCIATION], {"name", "accounts"}),
        ("qos", values.QOS, {"name"}),
    ],
)
def test_the_role_declares_the_same_options(variable: str, fields: Loaded, others: set[str]) -> None:
    text = (ROOT / ROLE / "meta/argument_specs.yml").read_text(encoding="utf-8")
    options = yaml.safe_load(text)["argument_specs"]["main"]["options"][f"slurm_accounts_{variable}"][
        "options"
    ]
    assert options.keys() == {field.option for field in fields} | others


@pytest.mark.parametrize(
    ("entity", "fields"),
    [
        ("associations", values.ASSOCIATION),
        ("accounts", [values.MANAGERS, *values.ACCOUNT]),
        ("users", values.USER),
        ("qos", values.QOS),
    ],
)
def test_what_the_role_sets_its_probe_reads(entity: str, fields: list[Loaded]) -> None:
    probes = yaml.safe_load((ROOT / ROLE / "meta/probes.yml").read_text())
    asked = {
        "associations": look.ASSOCIATIONS,
        "users": look.USERS,
        **{
            probe["arguments"][0]: probe["arguments"][-1].removeprefix("format=")
            for probe in probes
            if "arguments" in probe
        },
    }
    assert {field.keyword.lower() for field in fields} <= {*asked[entity].split(",")}


def test_whom_groups_bring_is_no_drift() -> None:
    synced = look.brought(
        '{"ice": {"open": ["alice"], "closed": ["dora"], "held": {}}, "sea": {"open": ["eve"], "closed": []}}'
    )
    associations = (
        "lab|ice|||r\nlab|ice|alice||\nlab|ice|bob||\nlab|sea|alice||\nlab|ice|dora||\nlab|sea|eve||\n"
    )
    users = "alice|sea|None\nbob|ice|None\nroot|root|Administrator\ndora|ice|None\neve|sea|None\n"
    assert list(look.watched(associations, users, synced)) == [
        *("lab|ice|||r", "lab|ice|bob||", "lab|sea|alice||"),
        *("alice|sea|None", "bob|ice|None", "root|root|Administrator"),
    ]
    assert look.brought("") == set()
