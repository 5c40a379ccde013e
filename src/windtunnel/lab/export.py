"""What the lab shows, to keep: as a study that flies it again, and as a page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.lab.setup import AUTO
from windtunnel.report.page import comparison_page
from windtunnel.site.fields import fields_of, quiet_values
from windtunnel.study.site_file import is_site_file

if TYPE_CHECKING:
    from windtunnel.lab.bench import Bench
    from windtunnel.lab.setup import Setup
    from windtunnel.site.conditions import Conditions

#: Options of `windtunnel.open_trace` that a study's trace may have.
_READING = ("format", "zone", "bad_rows")
#: What the lab's controls say, whatever a site file says.
_CONTROLS = ("cluster", "policy", "queueing", "placement", "sharing", "oversize", "incomplete")


def study(bench: Bench, setup: Setup) -> dict[str, Any]:
    """Return a setup as the plain data of a STUDY.toml: its runs, settings and all.

    Raises:
        WindtunnelError: the load of the setup cannot be computed.
    """
    load = bench.offered(setup)
    scheduler = bench.conditions(setup).scheduler
    name = bench.source.trace
    path = Path(name)
    trace: dict[str, Any] = {"trace": str(path.resolve()) if path.is_file() else name}
    trace |= {key: bench.source.reading[key] for key in _READING if key in bench.source.reading}
    data: dict[str, Any] = {
        "name": "lab",
        "policies": list(dict.fromkeys(setup.policies)),
        "clusters": [_cluster(bench, setup)],
        "placements": [setup.placement],
        "queueing": [] if setup.queueing == AUTO else [setup.queueing],
        "loads": ["recorded" if load is None else load],
        "seeds": [bench.source.seed],
        "options": {
            **_site_options(bench.site),
            "oversize": scheduler.oversize,
            "incomplete": scheduler.incomplete,
            **({} if scheduler.sharing is None else {"sharing": scheduler.sharing}),
        },
        "traces": [trace],
    }
    return {key: value for key, value in data.items() if value != []}


def _site_options(site: Conditions) -> dict[str, Any]:
    """Return what a site file says that no control of the lab does, by option."""
    options = {}
    for part in (site.site, site.scheduler):
        quiet = quiet_values(type(part))
        for name in fields_of(type(part)):
            value = getattr(part, name)
            if name not in _CONTROLS and value != quiet[name]:
                options[name] = list(value) if isinstance(value, tuple) else value
    return options


def _cluster(bench: Bench, setup: Setup) -> str:
    if not bench.is_own(setup):
        return str(bench.cluster(setup).name)
    given = bench.source.cluster
    if given is None:
        return "own"
    if is_site_file(given):
        given = bench.site.site.cluster
        if not isinstance(given, str):
            raise SpecError(
                "STUDY.toml",
                f"expected a site file that names its cluster; {bench.source.cluster} describes "
                "it. Write it into a file of its own, and name that.",
            )
    return str(Path(given).resolve()) if Path(given).is_file() else given


def study_toml(bench: Bench, setup: Setup) -> str:
    """Return a setup as the text of a STUDY.toml; see `study`.

    Raises:
        WindtunnelError: the load of the setup cannot be computed.
    """
    data = study(bench, setup)
    tables = {key: value for key, value in data.items() if _is_table(value)}
    lines = ["# What the lab showed; fly it again with: windtunnel study run STUDY.toml"]
    lines += [f"{key} = {_toml(value)}" for key, value in data.items() if key not in tables]
    for key, value in tables.items():
        head = f"[{key}]" if isinstance(value, dict) else f"[[{key}]]"
        for entry in [value] if isinstance(value, dict) else value:
            lines += ["", head, *(f"{name} = {_toml(part)}" for name, part in entry.items())]
    return "\n".join(lines) + "\n"


def page(bench: Bench, setup: Setup) -> str:
    """Return a setup's runs as the page of a comparison.

    Raises:
        WindtunnelError: the setup cannot be flown.
    """
    outcomes = bench.fly(setup)
    title = f"{bench.trace.name}: {', '.join(outcomes)}"
    command = "windtunnel study run STUDY.toml"
    return comparison_page(outcomes, trace=bench.trace, command=command, title=title)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(entry, dict) for entry in value)
    )


def _toml(value: Any) -> str:
    """Return a plain value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_toml(entry) for entry in value)}]"
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise ValueError(f"{value!r} has no place in a study")
        return repr(value)
    # A basic string of TOML is one of JSON, but for the escapes of characters beyond 16 bits.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
