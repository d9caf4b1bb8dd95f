"""What the templates of an inventory come to, by Ansible itself, in the process that reads the inventory.

What they look up (files, the environment, commands, vaults) is looked up here and now, as a run would do.
A value that many hosts share is worked out once.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ansible import constants
from ansible._internal._datatag._tags import Origin, TrustedAsTemplate
from ansible.errors import AnsibleError, AnsibleUndefinedVariable
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import EncryptedString
from ansible.template import Templar
from ansible.vars.hostvars import HostVars

Resolved = dict[str, Any]
"""``value`` where it is known; ``problems``, each with ``text``, ``where`` and ``undefined``, where there are
some; with neither of them it depends on what only a host knows. ``looks_up`` and ``vaulted`` say of what it
is made."""

_WORD = re.compile(r"[A-Za-z_]\w*")
_LOOKUPS = frozenset({"lookup", "query", "q"})
_FUNCTIONS = frozenset(
    {*_LOOKUPS, "cycler", "dict", "joiner", "lipsum", "namespace", "now", "omit", "range", "undef", "vars"}
)
"""What every template may call."""
_TAKES_THE_UNDEFINED = frozenset({"default", "d", "defined", "undefined", "ternary", "if"})
# What can mean any variable, or this host's, without its name: nothing that hosts share.
_OF_ONE_HOST = frozenset({"vars", "varnames", "template", "hostvars"})
_LATER = "deploy-known-on-the-host"
_KNOWN_LATER = f"{{{{ undef(hint='{_LATER}') }}}}"
_RECURSION = "Recursive loop"
_ASIDE = " Use -vvvvv to see paths searched."


class Resolver:
    """Templates of many hosts. Raises no AnsibleError, but others, where Ansible is not as it is known here.

    ``context`` has ``names``, the variables that roles read; ``defaults``, theirs; ``later``, names that have
    a value only in a run; ``facts``, those of ``ansible_facts`` that have; ``secrets``, the path of the
    site's secrets; ``extra``, what wins over all.
    """

    def __init__(self, loader: DataLoader, hostvars: HostVars, context: Mapping[str, Any]) -> None:
        self._loader = loader
        self._names = frozenset(context["names"])
        self._above = {**_secrets(loader, Path(context["secrets"])), **_trusted(context["extra"])}
        later = _trusted(_KNOWN_LATER)
        internal = {*constants.INTERNAL_STATIC_VARS, *_connection_names()}
        facts = dict.fromkeys(context["facts"], later)
        unknown = [*internal, *context["later"], *(f"ansible_{name}" for name in facts)]
        self._below = {**_trusted(context["defaults"]), **dict.fromkeys(unknown, later)}
        self._given = {"ansible_facts": facts, "hostvars": hostvars}
        # What is kept keeps its inputs alive, so that no other object gets their identities.
        self._words: dict[int, tuple[object, frozenset[str] | None]] = {}
        self._known: dict[tuple[object, ...], tuple[Sequence[object], Resolved]] = {}

    def of_host(self, variables: Mapping[str, Any]) -> dict[str, Resolved]:
        """By name every variable that roles read and that has a template in it."""
        own = {**variables, **self._above}
        return {
            str(name): self._resolved(own, value)
            for name, value in own.items()
            if name in self._names and self._words_of(value) is not None
        }

    def _resolved(self, variables: Mapping[str, Any], value: object) -> Resolved:
        words = self._all_words(variables, value)
        mentioned = sorted((words & variables.keys()) - self._given.keys())
        inputs = [value, *(variables[name] for name in mentioned)]
        if words & _OF_ONE_HOST:
            inputs.append(variables["inventory_hostname"])
        key = tuple(map(_identity, inputs))
        if key not in self._known:
            _prepare(self._loader)
            templar = Templar(self._loader, {**self._below, **variables, **self._given})
            answer = {
                **_rendered(templar, value, forgives="hostvars" in words),
                "looks_up": bool(words & _LOOKUPS),
                "vaulted": any(map(_is_vaulted, inputs)),
            }
            self._known[key] = (inputs, answer)
        return self._known[key][1]

    def _all_words(self, variables: Mapping[str, Any], value: object) -> frozenset[str]:
        """The words in a value's templates, and in those of the variables that they mention."""
        words = self._words_of(value) or frozenset()
        open_names = list(words)
        while open_names:
            more = (self._words_of(variables.get(open_names.pop())) or frozenset()) - words
            words |= more
            open_names += more
        return words

    def _words_of(self, value: object) -> frozenset[str] | None:
        """The words in a value's templates; None where there is no template."""
        if value is None or isinstance(value, bool | int | float):
            return None
        if id(value) not in self._words:
            texts = [text for text in _texts(value) if _is_template(text)]
            words = frozenset(word for text in texts for word in _WORD.findall(text))
            self._words[id(value)] = (value, words if texts else None)
        return self._words[id(value)][1]


def _identity(value: object) -> object:
    """By which hosts are found to share a value: texts are made anew for each of them."""
    return (type(value), value) if isinstance(value, str | int | float) else id(value)


def _rendered(templar: Templar, value: object, *, forgives: bool) -> Resolved:
    try:
        return {"value": templar.template(value)}
    except AnsibleError as problem:
        problems = list(_problems(templar, value)) or [problem]
    told = {
        (str(problem), _where(problem), isinstance(problem, AnsibleUndefinedVariable))
        for problem in problems
        if _LATER not in str(problem)
        # Other hosts have more variables in a run than here.
        and not (forgives and isinstance(problem, AnsibleUndefinedVariable))
    }
    told |= {(text, where, True) for text, where in _beside_what_comes_later(templar, value)}
    return {
        "problems": [
            {
                "text": "it refers to itself" if text.startswith(_RECURSION) else text.removesuffix(_ASIDE),
                "where": where,
                "undefined": undefined,
            }
            for text, where, undefined in sorted(told)
        ]
    }


def _problems(templar: Templar, value: object) -> Iterator[AnsibleError]:
    """What is wrong with each text in a value: of the whole only the first fault would be told."""
    for text in _texts(value):
        try:
            templar.template(text)
        except AnsibleError as problem:
            yield problem


def _beside_what_comes_later(templar: Templar, value: object) -> Iterator[tuple[str, str]]:
    """Variables that are not there, in texts of which only a run knows another part."""
    from jinja2 import Environment, TemplateSyntaxError, meta  # noqa: PLC0415

    for text in filter(_is_template, _texts(value)):
        words = set(_WORD.findall(text))
        if words & _TAKES_THE_UNDEFINED:
            continue
        try:
            names = meta.find_undeclared_variables(Environment(autoescape=True).parse(text))
        except TemplateSyntaxError:
            continue  # told already
        for name in sorted(names - templar.available_variables.keys() - _FUNCTIONS):
            origin = Origin.get_tag(text)
            yield f"'{name}' is undefined", f"{origin.path}:{origin.line_num or 1}" if origin else ""


def _where(problem: BaseException) -> str:
    link: BaseException | None = problem
    while link:
        thing = getattr(link, "obj", None)
        origin = thing if isinstance(thing, Origin) else Origin.get_tag(thing)
        if origin and origin.path:
            return f"{origin.path}:{origin.line_num or 1}"
        link = link.__cause__ or link.__context__
    return ""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _texts(name)
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _is_template(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def _is_vaulted(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_is_vaulted, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_is_vaulted, value))
    return isinstance(value, EncryptedString)


def _trusted(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    """A value whose texts may be templates, as those of the inventory may."""
    if isinstance(value, dict):
        return {name: _trusted(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_trusted(part) for part in value]
    return TrustedAsTemplate().tag(value) if isinstance(value, str) else value


def _secrets(loader: DataLoader, path: Path) -> dict[str, Any]:
    """The site's secrets, which win over the inventory; what is wrong with the file is told elsewhere."""
    try:
        content = loader.load_from_file(str(path), trusted_as_template=True) if path.exists() else {}
    except AnsibleError:
        return {}
    return content if isinstance(content, dict) else {}


def _connection_names() -> Iterator[str]:
    for names in constants.MAGIC_VARIABLE_MAPPING.values():
        yield from names


@cache
def _prepare(loader: DataLoader) -> None:
    """What only templates need, which few sites have: lookups that change nothing.

    Raises AttributeError or KeyError where Ansible does not do these things as it is known to.
    """
    from ansible.plugins.loader import lookup_loader  # noqa: PLC0415

    for name in ("password", "ansible.builtin.password"):
        _make_no_file(lookup_loader.get(name, class_only=True).run.__globals__)
    try:
        Templar(loader, {}).template(_trusted(_KNOWN_LATER))
    except AnsibleError as problem:
        if _LATER in str(problem):
            return
    raise AttributeError(name="undef", obj=Templar)


def _make_no_file(lookup: dict[str, Any]) -> None:
    """The password lookup makes a file that is not there; whoever reads an inventory makes none."""
    instead: dict[str, Any] = {
        "_get_lock": lambda _path: (False, ""),
        "_release_lock": lambda _file: None,
        "_write_password_file": lambda _path, _content: None,
    }
    for name, harmless in instead.items():
        lookup[name]  # raises KeyError where the lookup makes its file otherwise
        lookup[name] = harmless
