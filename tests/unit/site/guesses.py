"""What an admin, or a slip of the hand, may write: values that nearly fit, and texts that nearly parse."""

from collections.abc import Mapping
from typing import Any

import yaml
from hypothesis import strategies as st

from deploy.site.deepops import RENAMED
from deploy.site.rules import Range, rule_of
from deploy.site.schema import options
from deploy.site.wording import is_computed
from tests.unit.site.sites import INVENTORY

HOSTS = ("ctl1", "login1", "node1", "node2", "node3", "Node1", "gpu.example.com", "default", "10.0.0.1")
GROUPS = ("all", "slurm-master", "slurm-node", "slurm-login", "slurm-cluster", "slurm_node", "dgx", "node1")
_READ = (
    "hosts_file_address",
    "mariadb_users",
    "slurm_accounts_accounts",
    "slurm_accounts_qos",
    "slurm_accounts_users",
    "slurmctld_partitions",
    "slurmd_features",
    "slurmd_hardware",
    "users_accounts",
    "users_groups",
)
WORDS = (
    "",
    "node[1-2]",
    "node[1-",
    "a,b",
    "-1",
    "1-00:00:00",
    "UNLIMITED",
    "{{ site_a }}",
    "{{",
    "{% if %}",
    "/dev/nvidia[0-3]",
    "10.0.0.0/8",
    "'",
    "\u00e9\u2028\ud7ff",
    "a\nb",
    "\x85",
    *HOSTS,
    *GROUPS,
)

texts = st.sampled_from(WORDS) | st.text(max_size=12)
numbers = st.integers(-2, 5) | st.sampled_from([2001, 65536, 10**30]) | st.floats()
scalars = st.none() | st.booleans() | numbers | texts | st.dates()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | numbers, inner, max_size=3),
    max_leaves=8,
)


def fitting(
    path: str, spec: Mapping[str, Any], wild: st.SearchStrategy[Any] = values
) -> st.SearchStrategy[Any]:
    """Values that have the type, the keys, the choices and the form of a specification, or are ``wild``."""
    kind = spec.get("type", "str")
    sound: st.SearchStrategy[Any]
    if kind == "list":
        element = fitting(f"{path}[]", {**spec, "type": spec.get("elements", "raw")}, wild)
        sound = st.lists(element, max_size=3)
    elif kind == "dict" and spec.get("options"):
        keys: Mapping[str, Any] = spec["options"]
        inner = {key: fitting(f"{path}.{key}", keys[key], wild) for key in keys}
        required = {key: strategy for key, strategy in inner.items() if keys[key].get("required")}
        sound = st.fixed_dictionaries(
            required, optional={k: v for k, v in inner.items() if k not in required}
        )
    elif kind == "bool":
        sound = st.booleans()
    elif kind == "dict":
        sound = st.dictionaries(texts, scalars, max_size=2)
    elif spec.get("choices"):
        sound = st.sampled_from(spec["choices"])
    else:
        sound = _formed(path, spec)
    return st.one_of(sound, sound, sound, sound, wild)


def _formed(path: str, spec: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Numbers and texts that keep to the rule of a path; of some there are few, so that they meet."""
    rule = rule_of(path, spec)
    if isinstance(rule, Range):
        return st.integers(rule.low, rule.low + 4)
    if path.endswith((".groups[]", ".nodes[]", ".name", "accounts[]", "qos", "qos[]", ".parent")):
        return st.sampled_from(["physics", "math", "normal", "root", "slurm-node", "node1", "node[1-2]"])
    if rule and rule.judge:
        return st.just(rule.example)
    return st.from_regex(rule.pattern, fullmatch=True) if rule else texts


def _known(wild: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, Any]]:
    """Variables of roles, mostly those that deploy reads itself."""
    names = [name for name, option in options().items() if not is_computed(option.spec)]
    return st.one_of(st.sampled_from(_READ), st.sampled_from(_READ), st.sampled_from(names)).flatmap(
        lambda name: st.tuples(st.just(name), fitting(name, options()[name].spec, wild))
    )


def _assignments() -> st.SearchStrategy[dict[Any, Any]]:
    """Some variables of roles with nearly fitting values, and some that nothing knows."""
    other = st.tuples(
        st.sampled_from(
            ["ansible_host", "ansible_port", "ansible_hots", "site_a", 7, "slurmd_contract", *RENAMED]
        ),
        values,
    )
    known = _known(values)
    return st.lists(st.one_of(known, known, known, other), max_size=5).map(dict)


@st.composite
def mangled(draw: st.DrawFn, text: str) -> str:
    """A text with a few pieces cut out or put in."""
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 8)))
        piece = draw(
            st.sampled_from(["", "[", "]", ":", "=", "'", '"', "#", "\n", " ", "\t", "{", "- ", *GROUPS])
        )
        text = text[:start] + piece + text[end:]
    return text


def dumped(content: object) -> str:
    """As YAML."""
    return yaml.safe_dump(content, allow_unicode=True)


one_variable = _known(values).map(lambda pair: dumped(dict([pair])))
sound_variables = st.lists(_known(st.nothing()), max_size=8).map(dict).map(dumped)
variables = _assignments().map(dumped) | _assignments().map(dumped).flatmap(mangled)

_sections = st.lists(
    st.tuples(
        st.sampled_from(GROUPS),
        st.sampled_from(["", ":children", ":vars"]),
        st.lists(
            st.sampled_from([*HOSTS, *GROUPS, "node[1:3]", "node1 ansible_host=10.0.0.9", "a=1"]), max_size=4
        ),
    ),
    max_size=6,
).map(
    lambda sections: "".join(f"[{name}{kind}]\n" + "\n".join(lines) + "\n" for name, kind, lines in sections)
)
inventories = st.one_of(st.just(INVENTORY), mangled(INVENTORY), _sections)
files = st.fixed_dictionaries(
    {},
    optional={
        "group_vars/all.yml": variables,
        "group_vars/slurm-master.yml": variables,
        "group_vars/slurm-node.yml": variables,
        "host_vars/node1.yml": variables,
        "hardware.yml": st.dictionaries(
            st.sampled_from(HOSTS), fitting("slurmd_hardware", options()["slurmd_hardware"].spec), max_size=2
        )
        .map(dumped)
        .flatmap(mangled),
        "secrets.yml": variables,
    },
)
