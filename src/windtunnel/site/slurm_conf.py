"""Read ``slurm.conf``, ``gres.conf`` and ``topology.conf``: what a site is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import TraceError, quote
from windtunnel.site.host_list import hosts
from windtunnel.site.slurm import (
    SlurmNode,
    SlurmPartition,
    SlurmPriority,
    SlurmSettings,
    SlurmSite,
    SlurmSwitch,
)
from windtunnel.site.slurm_words import (
    checked,
    duration,
    factor,
    is_yes,
    licenses,
    number,
    size,
    text_of,
    whole,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Parameters whose lines describe one thing each.
_THINGS = ("nodename", "partitionname", "switchname", "downnodes", "nodeset", "name")
_COUNT = re.compile(r"-?[0-9]+")
_DEPTH = 8
_MOST_FILES = 1000
_MOST_LEVELS = 32


def read_slurm_conf(folder: str | Path) -> SlurmSite:
    """Return the site that a folder's ``slurm.conf`` describes, or a file of that kind.

    ``gres.conf`` and ``topology.conf`` beside it are read, too; ``Include`` lines are followed.

    Raises:
        TraceError: a file is missing, or a line says nothing that is understood.
    """
    folder = Path(folder)
    file = folder / "slurm.conf" if folder.is_dir() else folder
    lines = list(read_lines(file))
    options = {key: value for line in lines for key, value in line.items() if _is_option(line)}
    settings = _settings(file, options)
    nodes = _nodes(file, [line for line in lines if "nodename" in line])
    nodes = _with_gres(file.with_name("gres.conf"), nodes)
    sets = _node_sets(file, [line for line in lines if "nodeset" in line], nodes)
    names = tuple(node.name for node in nodes)
    partitions = _partitions(file, [line for line in lines if "partitionname" in line], names, sets)
    switches: tuple[SlurmSwitch, ...] = ()
    if settings.tree and file.with_name("topology.conf").exists():
        switches = _switches(file.with_name("topology.conf"))
    return SlurmSite(nodes=nodes, partitions=partitions, switches=switches, settings=settings)


def _is_option(line: dict[str, str]) -> bool:
    return not any(name in line for name in _THINGS)


def read_lines(
    file: Path, depth: int = 0, seen: list[Path] | None = None
) -> Iterator[dict[str, str]]:
    """Yield a file's lines as keys (lower case) and values; continued lines are joined."""
    seen = [] if seen is None else seen
    seen.append(file)
    if len(seen) > _MOST_FILES:
        raise TraceError(str(file), f"at most {_MOST_FILES:,} Include lines")
    text = text_of(file)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        line = re.sub(r"(?<!\\)#.*", "", line).strip()  # noqa: PLW2901 - what is left of it
        if not line:
            continue
        if line.lower().startswith("include "):
            if depth < _DEPTH:
                yield from read_lines(file.parent / line.split(None, 1)[1].strip(), depth + 1, seen)
            continue
        yield {key.lower(): value for key, _, value in (w.partition("=") for w in _words(line))}


def _words(line: str) -> list[str]:
    """Return a line's words; quotes hold one together."""
    try:
        return shlex.split(re.sub(r"\s*=\s*", "=", line))
    except ValueError:
        return line.split()


def value_of(
    file: Path, line: dict[str, str], key: str, read: Callable[[str], Any], default: Any
) -> Any:
    """Return what a line says under a key.

    Raises:
        TraceError: it is not understood.
    """
    text = line.get(key.lower())
    if text is None:
        return default
    try:
        return checked(read(text))
    except (ValueError, OverflowError) as error:
        raise TraceError(
            str(file), str(error) or "a value Slurm knows", column=key, value=text
        ) from error


def _seconds(text: str) -> int | None:
    return duration(text, unit=1)


def _settings(file: Path, options: dict[str, str]) -> SlurmSettings:
    def get(key: str, read: Callable[[str], Any], default: Any) -> Any:
        return value_of(file, options, key, read, default)

    over = options.get("overtimelimit", "0").upper()
    return SlurmSettings(
        backfill="backfill" in options.get("schedulertype", "sched/backfill"),
        scheduler=_parameters(options.get("schedulerparameters", "")),
        select=frozenset(
            w.upper() for w in options.get("selecttypeparameters", "CR_Core_Memory").split(",")
        ),
        tree="tree" in options.get("topologyplugin", ""),
        enforce=frozenset(options.get("accountingstorageenforce", "").lower().split(",")) - {""},
        preempt=options.get("preempttype", "preempt/none").partition("/")[2].replace("none", ""),
        preempt_mode=options.get("preemptmode", "OFF").upper(),
        preempt_parameters=_parameters(options.get("preemptparameters", "")),
        preempt_exempt=get("PreemptExemptTime", _exempt, 0),
        requeues=get("JobRequeue", whole, 1) != 0,
        message_timeout=get("MessageTimeout", whole, 10),
        over_time_limit=None if over == "UNLIMITED" else 60 * get("OverTimeLimit", whole, 0),
        kill_wait=get("KillWait", whole, 30),
        licenses=get("Licenses", licenses, {}),
        memory_per_node=get("DefMemPerNode", number, None),
        memory_per_cpu=get("DefMemPerCPU", number, None),
        priority=_priority(file, options),
    )


def _exempt(text: str) -> int:
    """Return the s of ``PreemptExemptTime``; -1 is none."""
    return 0 if text.strip() == "-1" else duration(text, unit=60) or 0


def _parameters(text: str) -> dict[str, str]:
    """Return ``SchedulerParameters`` by name; what has no value has an empty one."""
    pairs = (item.strip().partition("=") for item in text.split(","))
    return {name.lower(): value for name, _, value in pairs if name}


def _priority(file: Path, options: dict[str, str]) -> SlurmPriority:
    def get(key: str, read: Callable[[str], Any], default: Any) -> Any:
        return value_of(file, options, "Priority" + key, read, default)

    return SlurmPriority(
        multifactor="multifactor" in options.get("prioritytype", "priority/multifactor"),
        period=get("CalcPeriod", duration, 300) or 300,
        half_life=get("DecayHalfLife", duration, 7 * 86400) or 0,
        max_age=get("MaxAge", duration, 7 * 86400) or 1,
        age=get("WeightAge", whole, 0),
        fair_share=get("WeightFairshare", whole, 0),
        job_size=get("WeightJobSize", whole, 0),
        partition=get("WeightPartition", whole, 0),
        qos=get("WeightQOS", whole, 0),
        assoc=get("WeightAssoc", whole, 0),
        tres=get("WeightTRES", _weights, {}),
        favor_small=is_yes(options.get("priorityfavorsmall", "NO")),
        dampening=value_of(file, options, "FairShareDampeningFactor", whole, 1),
        flags=frozenset(options.get("priorityflags", "").upper().split(",")) - {""},
    )


def _weights(text: str) -> dict[str, float]:
    pairs = (item.partition("=") for item in text.split(",") if item)
    return {name.lower().removeprefix("gres/"): factor(value) for name, _, value in pairs}


def _nodes(file: Path, lines: list[dict[str, str]]) -> tuple[SlurmNode, ...]:
    found: dict[str, SlurmNode] = {}
    defaults: dict[str, str] = {}
    for line in lines:
        if line["nodename"].upper() == "DEFAULT":
            defaults |= line
            continue
        fields = defaults | line
        sockets = value_of(
            file, fields, "Sockets", whole, value_of(file, fields, "SocketsPerBoard", whole, 1)
        )
        sockets *= value_of(file, fields, "Boards", whole, 1) if "socketsperboard" in fields else 1
        threads = value_of(file, fields, "ThreadsPerCore", whole, 1)
        cores = sockets * value_of(file, fields, "CoresPerSocket", whole, 1)
        for name in value_of(file, line, "NodeName", hosts, []):
            if name in found:
                expected = "each node on one line"
                raise TraceError(str(file), expected, column="NodeName", value=name)
            found[name] = SlurmNode(
                name=name,
                cpus=value_of(file, fields, "CPUs", size, cores * threads),
                memory=value_of(file, fields, "RealMemory", size, 1),
                gpus=value_of(file, fields, "Gres", gpu_counts, {}),
                weight=value_of(file, fields, "Weight", whole, 1),
                features=words(fields.get("features", fields.get("feature", ""))),
                state=fields.get("state", "IDLE").upper(),
            )
    return tuple(found.values())


def gpu_counts(text: str) -> dict[str, int]:
    """Return GPUs by type (lower case) of a ``Gres``: ``gpu:a100:4(S:0-1),nvme:1``.

    Raises:
        ValueError: a count is no number.
    """
    found: dict[str, int] = {}
    for item in re.sub(r"\([^)]*\)", "", text).split(","):
        kind, *rest = item.split(":")
        if kind != "gpu":
            continue
        rest = [word for word in rest if word != "no_consume"]
        counts = bool(rest) and _COUNT.fullmatch(rest[-1]) is not None
        count = size(rest[-1]) if counts else 1
        gpu_type = rest[0].lower() if len(rest) > counts else ""
        found[gpu_type] = found.get(gpu_type, 0) + count
    return found


def _with_gres(file: Path, nodes: tuple[SlurmNode, ...]) -> tuple[SlurmNode, ...]:
    """Return the nodes with the types of GPUs that ``gres.conf`` tells and slurm.conf does not."""
    if not file.exists():
        return nodes
    types: dict[str, dict[str, int]] = {}
    for line in read_lines(file):
        if line.get("name", "").lower() != "gpu":
            continue
        files = value_of(file, line, "File", hosts, [])
        count = value_of(file, line, "Count", size, max(len(files), 1))
        for name in value_of(file, line, "NodeName", hosts, [node.name for node in nodes]):
            of = types.setdefault(name, {})
            kind = line.get("type", "").lower()
            of[kind] = of.get(kind, 0) + count
    return tuple(
        msgspec.structs.replace(node, gpus=types[node.name])
        if set(node.gpus) == {""} and "" not in types.get(node.name, {"": 0})
        else node
        for node in nodes
    )


def _node_sets(
    file: Path, lines: list[dict[str, str]], nodes: tuple[SlurmNode, ...]
) -> dict[str, list[str]]:
    """Return the nodes of each ``NodeSet``: those it lists, and those that have its feature."""
    found: dict[str, list[str]] = {}
    for line in lines:
        listed = value_of(file, line, "Nodes", hosts, [])
        feature = line.get("feature", "")
        found[line["nodeset"]] = [*listed, *(n.name for n in nodes if feature in n.features)]
    return found


def _partitions(
    file: Path,
    lines: list[dict[str, str]],
    names: tuple[str, ...],
    sets: dict[str, list[str]],
) -> tuple[SlurmPartition, ...]:
    known = set(names)
    found: dict[str, SlurmPartition] = {}
    defaults: dict[str, str] = {}
    for line in lines:
        if line["partitionname"].upper() == "DEFAULT":
            defaults |= line
            continue
        fields = defaults | line
        listed = fields.get("nodes", "ALL")
        given = names if listed.upper() == "ALL" else value_of(file, fields, "Nodes", hosts, [])
        of = {node for name in given for node in sets.get(name, [name])}
        if of - known:
            message = "names of NodeName or NodeSet lines"
            raise TraceError(str(file), message, column="Nodes", value=min(of - known))
        found[line["partitionname"]] = _partition(
            file, fields, tuple(name for name in names if name in of)
        )
    return tuple(found.values())


def _partition(file: Path, fields: dict[str, str], nodes: tuple[str, ...]) -> SlurmPartition:
    both = value_of(file, fields, "Priority", whole, 1)
    over = value_of(file, fields, "OverTimeLimit", number, None)
    return SlurmPartition(
        name=fields["partitionname"],
        nodes=nodes,
        max_time=value_of(file, fields, "MaxTime", duration, None),
        default_time=value_of(file, fields, "DefaultTime", duration, None),
        min_nodes=value_of(file, fields, "MinNodes", whole, 0),
        max_nodes=value_of(file, fields, "MaxNodes", number, None),
        tier=value_of(file, fields, "PriorityTier", whole, both),
        job_factor=value_of(file, fields, "PriorityJobFactor", whole, both),
        exclusive=fields.get("oversubscribe", fields.get("shared", "")).upper().startswith("EXCL"),
        least_loaded=is_yes(fields.get("lln", "NO")),
        memory_per_node=value_of(file, fields, "DefMemPerNode", number, None),
        memory_per_cpu=value_of(file, fields, "DefMemPerCPU", number, None),
        over_time_limit=None if over is None else 60 * over,
        preempt_mode=fields.get("preemptmode", "").upper(),
        grace=value_of(file, fields, "GraceTime", _seconds, 0) or 0,
        qos="" if fields.get("qos", "").upper() in ("N/A", "") else fields["qos"],
        allowed_accounts=_allowed(fields.get("allowaccounts")),
        denied_accounts=words(fields.get("denyaccounts", "")),
        allowed_qos=_allowed(fields.get("allowqos")),
        denied_qos=words(fields.get("denyqos", "")),
        is_default=is_yes(fields.get("default", "NO")),
        is_up=fields.get("state", "UP").upper() == "UP",
    )


def _allowed(text: str | None) -> frozenset[str] | None:
    return None if text is None or text.upper() == "ALL" else words(text)


def _switches(file: Path) -> tuple[SlurmSwitch, ...]:
    found = tuple(
        SlurmSwitch(
            name=line["switchname"],
            nodes=tuple(value_of(file, line, "Nodes", hosts, [])),
            switches=tuple(value_of(file, line, "Switches", hosts, [])),
        )
        for line in read_lines(file)
        if "switchname" in line
    )
    below = {switch.name: switch.switches for switch in found}
    for child in (child for children in below.values() for child in children):
        if child not in below:
            raise TraceError(str(file), f"a line of switch {quote(child)}")
    left = set(below)
    for _ in range(_MOST_LEVELS):
        left = {name for name in left if left.intersection(below[name])}
    if left:
        message = f"at most {_MOST_LEVELS} levels of switches without a circle"
        raise TraceError(str(file), f"{message}; {quote(min(left))} is above more")
    return found
