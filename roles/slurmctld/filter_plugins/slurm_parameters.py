"""Filter: the parameters of a file of Slurm, from those that deploy writes and those that a site adds."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

_SEPARATOR = re.compile("[,;]")
_SHARED = frozenset(
    (
        *(
            "accountingstoragetres",
            "clifilterplugins",
            "dependencyparameters",
            "grestypes",
            "launchparameters",
            "licenses",
        ),
        *("prologflags", "schedulerparameters", "slurmctldparameters"),
    )
)
"""Lists in which deploy has words that the rest of the cluster relies on: a site adds to them."""


def with_parameters_of_site(own: Mapping[str, Any], of_site: Mapping[str, Any]) -> dict[str, str]:
    """What is to be written: what the site says wins, and an empty value removes.

    Slurm does not care for the case of a name, so neither may a site's spelling make a second line of it.
    """
    spelling = {name.lower(): name for name in own}
    found = {name: _text(value) for name, value in own.items()}
    for name, value in of_site.items():
        known = spelling.get(name.lower(), name)
        text = _text(value)
        if text and known.lower() in _SHARED:
            name_of = _license if known.lower() == "licenses" else _name
            text = _added(found.get(known, ""), text, name_of)
        found[known] = text
    return {name: text for name, text in found.items() if text}


def _text(value: object) -> str:
    if value is None:
        return ""
    is_list = isinstance(value, Collection) and not isinstance(value, str)
    return ",".join(map(str, value)) if is_list else str(value)  # type: ignore[call-overload]


def _added(own: str, of_site: str, name_of: Callable[[str], str]) -> str:
    """The words of both lists, each once; Slurm does not care for their case either, and takes the first.

    Of a word with a value, as ``bf_window=2880``, the site's is written.
    """
    words = {name_of(word): word for word in (part.strip() for part in _SEPARATOR.split(of_site))}
    has = {name_of(word): word for word in own.split(",") if word}
    return ",".join(
        [words[key] if key in words and key != word.lower() else word for key, word in has.items()]
        + [word for key, word in words.items() if key not in has]
    )


def _name(word: str) -> str:
    return word.partition("=")[0].strip().lower()


def _license(word: str) -> str:
    """Slurm adds up what a license says twice: ``matlab:10,matlab:20`` would be 30 of them."""
    return re.split("[:=]", word)[0].strip()


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters by name."""
        return {"with_parameters_of_site": with_parameters_of_site}
