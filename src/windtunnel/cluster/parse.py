"""The cluster that a word stands for: on the command line, and wherever a string is taken."""

from __future__ import annotations

import re

from windtunnel.cluster.presets import SITES
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.errors import SpecError, nearest, quote

#: ``64x8:A100``: 64 nodes of 8 GPUs of type A100.
_UNIFORM = re.compile(r"(?P<nodes>\d+)x(?P<gpus>\d+)(?::(?P<type>[\w.+-]+))?")
#: ``pool:512`` or ``pool:512:A100``.
_ENDLESS = re.compile(r"\d{100,}")
_POOL = re.compile(r"pool:(?P<gpus>\d+)(?::(?P<type>[\w.+-]+))?")
#: ``v100:8``: 8 GPUs of one type without node boundaries; ``v100:2x4``: 2 nodes of 4.
_TYPED = re.compile(r"(?P<type>[A-Za-z][\w.+-]*):(?:(?P<nodes>\d+)x)?(?P<gpus>\d+)")
#: ``pai/6``: a sixth of a preset.
_PART = re.compile(r"(?P<name>[\w-]+)/(?P<divisor>\d+)")
#: ``package.module:name``.
_IMPORT = re.compile(r"(?!pool:)[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def parse_cluster(text: str) -> ClusterSpec:
    """Return the cluster a command-line word stands for.

    Args:
        text: ``64x8:A100`` (several joined by commas), ``pool:512[:TYPE]``, GPUs by type
            (``v100:8,p100:16``: one big node each; ``v100:2x4``), a ``.toml`` file, a preset's
            name, or a part of one: ``pai/6`` has a sixth of the nodes of each type; or a site as in
            `windtunnel.plugins`.

    Raises:
        SpecError: none of these; says what is accepted.

    >>> parse_cluster("2x4:V100,1x8:A100").describe()
    '16 GPUs: 2 nodes x 4 V100, 1 nodes x 8 A100'
    >>> parse_cluster("philly/11").describe()
    '256 GPUs: 32 nodes x 8 GPUs'
    >>> parse_cluster("v100:8,p100:16").describe()
    '24 GPUs: 1 nodes x 8 v100, 1 nodes x 16 p100'
    """
    text = text.strip()
    if _ENDLESS.search(text):
        raise SpecError("cluster", f"found {quote(text)}; expected numbers of fewer digits.")
    if match := _POOL.fullmatch(text):
        return ClusterSpec.pool(int(match["gpus"]), gpu_type=match["type"])
    parts = [_UNIFORM.fullmatch(part.strip()) for part in text.split(",")]
    matches = [part for part in parts if part is not None]
    if matches and len(matches) == len(parts):
        nodes = tuple(NodeType(int(m["nodes"]), int(m["gpus"]), m["type"]) for m in matches)
        return ClusterSpec(nodes, text)
    typed = [_TYPED.fullmatch(part.strip()) for part in text.split(",")]
    named = [part for part in typed if part is not None]
    if len(named) == len(typed):
        nodes = tuple(NodeType(int(m["nodes"] or 1), int(m["gpus"]), m["type"]) for m in named)
        return ClusterSpec(nodes, text)
    if text.endswith(".toml"):
        return ClusterSpec.from_toml(text)
    part = _PART.fullmatch(text)
    name = SITES.spelt(text if part is None else part["name"])
    if name is not None:
        return SITES[name] if part is None else SITES[name].part(int(part["divisor"]))
    if _IMPORT.fullmatch(text):
        return SITES.resolve(text)
    raise SpecError(
        "cluster",
        f"found {quote(text)}; expected NODESxGPUS[:TYPE][,...], pool:GPUS, TYPE:GPUS[,...], "
        f"a .toml file, package.module:name, or one of {', '.join(sorted(SITES))}."
        f"{nearest(text, SITES)}",
    )
