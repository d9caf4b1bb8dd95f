"""The page on which users say what they want, as HTML without anything that has to be built."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from portal_choices import OWN_IMAGE, Offers, accounts_of, qos_of

_SCRIPT = """\
<script>
(function () {
  const offers = JSON.parse(document.getElementById("portal-offers").textContent);
  const by = (name) => document.querySelector('[name="' + name + '"]');
  const fill = (select, values, words) => {
    const before = select.value;
    select.replaceChildren(...values.map((value) => new Option(words(value), value)));
    if (values.includes(before)) { select.value = before; }
  };
  function narrow() {
    const here = offers[by("partition").value];
    fill(by("account"), Object.keys(here.accounts), (name) => name);
    fill(by("qos"), [""].concat(here.accounts[by("account").value] || []), (name) => name || "the default");
    fill(by("gpu_type"), Object.keys(here.gpus), (name) => name || "any");
    by("gpus").max = here.gpus[by("gpu_type").value] || 0;
    if (+by("gpus").value > +by("gpus").max) { by("gpus").value = by("gpus").max; }
    by("minutes").max = here.minutes;
    if (+by("minutes").value > here.minutes) { by("minutes").value = here.minutes; }
  }
  function own() {
    if (!by("image")) { return; }
    const isOwn = by("environment").value === offers_own;
    by("image").closest("div").hidden = !isOwn;
    by("image").required = isOwn;
    if (!isOwn) { by("image").value = ""; }
  }
  const offers_own = "own:image";
  by("environment").addEventListener("change", own);
  own();
  for (const name of ["partition", "account", "gpu_type"]) { by(name).addEventListener("change", narrow); }
  narrow();
})();
</script>
"""


def form_page(may: Offers, limits: Mapping[str, Any], before: Mapping[str, str] | None = None) -> str:
    """The form's inner part, with what was chosen the last time where that is still on offer."""
    chosen = {**{name: str(value) for name, value in limits["defaults"].items()}, **(before or {})}
    accounts = list(
        dict.fromkeys(name for each in may.partitions.values() for name in accounts_of(each, may.accounts))
    )
    types = list(dict.fromkeys(kind for each in may.partitions.values() for kind in each.gpus))
    qos = list(dict.fromkeys(name for account in accounts for name in may.accounts[account]))
    most = min(
        int(limits["max_gpus"]), max((n for p in may.partitions.values() for n in p.gpus.values()), default=0)
    )
    rows = [
        _select("partition", "Partition", [(name, name) for name in may.partitions], chosen),
        _select("account", "Account that is charged", [(name, name) for name in accounts], chosen),
        _select("qos", "QOS", [("", "the default"), *((name, name) for name in qos)], chosen),
        _number("gpus", "GPUs", 0, most, chosen),
        _select(
            "gpu_type", "Type of GPU", [(kind, kind or "any") for kind in types] or [("", "none")], chosen
        ),
        _number("cpus", "CPUs", 1, int(limits["max_cpus"]), chosen),
        _number("memory_gb", "Memory in GB", 1, int(limits["max_memory_gb"]), chosen),
        _number("minutes", "Minutes", 1, int(limits["max_minutes"]), chosen),
        _select(
            "environment",
            "Environment",
            [(each["name"], each["title"]) for each in limits["environments"]]
            + ([(OWN_IMAGE, "An image of my own")] if limits.get("own_images") else []),
            chosen,
        ),
        *([_image(chosen)] if limits.get("own_images") else []),
    ]
    # "<" would end the element.
    data = json.dumps(_by_partition(may, limits)).replace("<", "\\u003c")
    offers = f'<script type="application/json" id="portal-offers">{data}</script>'
    return "\n".join([*rows, offers, _SCRIPT])


def _by_partition(may: Offers, limits: Mapping[str, Any]) -> dict[str, Any]:
    most = int(limits["max_minutes"])
    return {
        each.name: {
            "accounts": {name: qos_of(each, may.accounts[name]) for name in accounts_of(each, may.accounts)},
            "gpus": {kind: min(count, int(limits["max_gpus"])) for kind, count in each.gpus.items()}
            or {"": 0},
            "minutes": min(each.minutes or most, most),
        }
        for each in may.partitions.values()
    }


def _select(name: str, title: str, values: Iterable[tuple[str, str]], chosen: Mapping[str, str]) -> str:
    options = ""
    for value, words in values:
        mark = " selected" if chosen.get(name) == value else ""
        options += f'<option value="{escape(value)}"{mark}>{escape(words)}</option>'
    return _row(
        name, title, f'<select class="form-select" id="portal-{name}" name="{name}">{options}</select>'
    )


def _number(name: str, title: str, least: int, most: int, chosen: Mapping[str, str]) -> str:
    wanted = chosen.get(name) or ""
    # A browser sends no form with more than the most, not even what stands there by itself.
    value = min(int(wanted), most) if wanted.isascii() and wanted.isdigit() else least
    field = f'<input class="form-control" type="number" id="portal-{name}" name="{name}" '
    return _row(name, title, field + f'min="{least}" max="{most}" value="{value}" required>')


def _image(chosen: Mapping[str, str]) -> str:
    words = "Image, with JupyterLab and JupyterHub in it"
    field = '<input class="form-control" type="text" id="portal-image" name="image" maxlength="512" '
    field += 'placeholder="/home/me/image.sqsh or registry#team/image:tag" '
    return _row("image", words, f'{field}value="{escape(chosen.get("image") or "")}">')


def _row(name: str, title: str, field: str) -> str:
    label = f'<label class="form-label" for="portal-{name}">{escape(title)}</label>'
    return f'<div class="mb-3">{label}{field}</div>'
