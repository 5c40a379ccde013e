"""Where the curves of utilisation, power and temperature come from: published files, or telemetry.

AcmeTrace's figures 1b, 7, 8 and 9 are drawn from percentile files that its authors published
(InternLM/AcmeTrace ``data/utilization/util_pkl``); the same curves of a site of one's own come from
its telemetry.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.report.names import clean

if TYPE_CHECKING:
    from collections.abc import Sequence


#: Percents that curves of telemetry are drawn at.
PERCENTS: tuple[float, ...] = tuple(i / 4 for i in range(401))
#: Points of a published curve that are drawn, of its 1,000.
MOST_POINTS = 401
#: What the published files call our metrics, where several clusters have them.
_OF_GPUS = {
    "gpu_mem_pct": "gpu_mem",
    "sm_activity_pct": "sm_activity",
    "tc_or_occupancy_dup_pct": "tc_activity",
}
_OF_NODES = {"cpu_util_pct": "cpu_util", "cpu_mem_pct": "host_mem"}
_TEMPERATURES = {"gpu_temp_c": "gpu_temp", "mem_temp_c": "gpu_mem_temp"}
#: Published file -> cluster and the metrics in it. Of the two Kalos curves of GPU utilisation the
#: one that AcmeTrace's figure 1b draws.
_PUBLISHED: dict[str, tuple[str, dict[str, str]]] = {
    "util_gpu_seren": ("Seren", {"gpu_util_pct": "gpu_util", **_OF_GPUS}),
    "util_gpu_kalos_full": ("Kalos", _OF_GPUS),
    "util_gpu_kalos": ("Kalos", {"gpu_util_pct": "gpu_util"}),
    "util_gpu_pai": ("PAI", {"gpu_util_pct": "gpu_util"}),
    "util_gpu_philly": ("Philly", {"gpu_util_pct": "gpu_util"}),
    "util_cpu_mem_seren": ("Seren", _OF_NODES),
    "util_cpu_mem_kalos": ("Kalos", _OF_NODES),
    "gpu_temp_seren": ("Seren", _TEMPERATURES),
    "gpu_temp_kalos": ("Kalos", _TEMPERATURES),
    "gpu_power_seren": ("Seren", {"power_w": "gpu_power"}),
    "gpu_power_kalos": ("Kalos", {"power_w": "gpu_power"}),
    "ib_seren": ("Seren", {"ib_send": "ib_send", "ib_receive": "ib_receive"}),
    "server_power": (
        "Seren",
        {"gpu_server_w": "gpu_node_power", "cpu_server_w": "cpu_node_power"},
    ),
}
#: The medians that go with them, as published with the files: metric -> cluster -> median.
PUBLISHED_P50: dict[str, dict[str, float]] = {
    "gpu_util": {"Seren": 99, "Kalos": 97, "Philly": 48.45, "PAI": 3.83},
    "gpu_mem": {"Seren": 39.28, "Kalos": 75.41},
    "sm_activity": {"Seren": 50.16, "Kalos": 33.26},
    "tc_activity": {"Seren": 13.96, "Kalos": 9.31},
    "cpu_util": {"Seren": 7.98, "Kalos": 20.1},
    "host_mem": {"Seren": 15.0, "Kalos": 7.18},
    "gpu_power": {"Seren": 96.5, "Kalos": 101.4},
    "gpu_temp": {"Seren": 39, "Kalos": 40},
    "gpu_mem_temp": {"Seren": 51, "Kalos": 51},
    "gpu_node_power": {"Seren": 2520},
    "cpu_node_power": {"Seren": 546},
    "ib_send": {"Seren": 0},
}
#: Our metrics, and what the formats of `windtunnel.telemetry` call them.
_NAMES: dict[str, tuple[str, ...]] = {
    "gpu_util": ("GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL", "gpu_util"),
    "gpu_mem": ("FB_USED_PERCENT",),
    "sm_activity": ("SM_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE"),
    "tc_activity": ("PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    "cpu_util": ("NODE_CPU_UTILIZATION", "cpu_util"),
    "host_mem": ("NODE_MEMORY_UTILIZATION", "mem_util"),
    "ib_send": ("NODE_IB_SEND",),
    "ib_receive": ("NODE_IB_RECEIVE",),
    "gpu_temp": ("GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP"),
    "gpu_mem_temp": ("MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP"),
    "gpu_power": ("POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE"),
    "gpu_node_power": ("GPU_NODE_POWER",),
    "cpu_node_power": ("CPU_NODE_POWER",),
}
_MEASURED = {name: metric for metric, names in _NAMES.items() for name in names}
#: Metrics that are measured as a fraction and drawn in percent.
_FRACTIONS = "DCGM_FI_PROF_"


def published_curves(path: str | Path) -> pa.Table:
    """Return the curves of published percentile files.

    Args:
        path: the ``.npz`` with all of them, one pickle, or the folder of the pickles.

    Returns:
        Columns ``origin`` (cluster), ``metric``, ``value``, ``percent``, ``p50``,
        ``published_p50`` (null where none is known), ``n`` (null: the files do not say of how many
        samples), ``left_out``; at most `MOST_POINTS` points a curve.

    Raises:
        TraceError: it is no such file, or none of its curves is one of AcmeTrace's.
    """
    from windtunnel.telemetry.published import percentiles

    files = _files(Path(path))
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for file in files:
        for row in percentiles(file).to_pylist():
            rows.setdefault((row["source"], row["metric"]), []).append(
                (row["value"], row["percent"])
            )
    curves = []
    for (source, metric), points in rows.items():
        cluster, metrics = _PUBLISHED.get(source, ("", {}))
        if metric in metrics:
            value, percent = np.array(points, dtype=np.float64).T
            curves.append(_curve(cluster, metrics[metric], value, percent, None))
    if not curves:
        names = ", ".join(sorted({source for source, _ in rows})) or "none"
        raise TraceError(
            str(path),
            "AcmeTrace's percentile files, known by their names",
            hint=f"Files found: {clean(names, 200)}.",
        )
    return _table(curves)


def _files(path: Path) -> list[Path]:
    """Return the files of a path."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.pkl"))
    if not files:
        raise TraceError(str(path), "a folder of .pkl files")
    return files


def measured_curves(
    path: str | Path, origin: str | None = None
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the curves of telemetry, and what a reader must know of it.

    Args:
        path: what `windtunnel.telemetry.open_telemetry` opens.
        origin: what to call it; default: the file's name.

    Returns:
        As `published_curves`, ``n`` being samples; and the reader's notes and what it left out.

    Raises:
        WindtunnelError: it cannot be read, or measures nothing that a figure draws.
    """
    from windtunnel.characterize.telemetry_counts import percentiles
    from windtunnel.telemetry import open_telemetry

    telemetry = open_telemetry(path)
    found = percentiles(telemetry.relation(), at=PERCENTS).to_pylist()
    name = clean(origin or Path(path).stem, 28)
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        by_metric.setdefault(row["metric"], []).append(row)
    curves = []
    for metric, rows in by_metric.items():
        if metric in _MEASURED:
            factor = 100.0 if metric.startswith(_FRACTIONS) else 1.0
            values = np.array([row["value"] for row in rows]) * factor
            percent = np.array([row["percent"] for row in rows])
            curves.append(_curve(name, _MEASURED[metric], values, percent, rows[0]["n"]))
    if not curves:
        raise SpecError(
            f"--telemetry {path}",
            f"measures nothing that a figure draws; it has {_quoted(by_metric)}, "
            f"figures are drawn from {', '.join(_MEASURED)}.",
        )
    dropped = [
        f"{count:,} measurements left out: {why}" for why, count in telemetry.dropped.items()
    ]
    others = sorted(set(by_metric) - set(_MEASURED))
    unused = [f"no figure draws {_quoted(others)}."] if others else []
    notes = [f"{name}: {note}" for note in (*telemetry.notes, *dropped, *unused)]
    return _table(curves), tuple(notes)


def joined_curves(tables: Sequence[pa.Table]) -> pa.Table | None:
    """Return the curves of several sources as one table; None where there is none.

    Raises:
        SpecError: two sources give the same metric under the same name.
    """
    seen: set[tuple[str, str]] = set()
    for table in tables:
        pairs = set(zip(table["origin"].to_pylist(), table["metric"].to_pylist(), strict=True))
        for origin, metric in sorted(pairs & seen):
            raise SpecError(
                "--telemetry",
                f"{quote(origin)} has {quote(metric)} twice; give each source a name of its own "
                "(NAME=PATH).",
            )
        seen |= pairs
    return pa.concat_tables(tables) if tables else None


def _quoted(names: Any) -> str:
    return ", ".join(quote(name) for name in list(names)[:20]) or "nothing"


_Points = dict[str, Any]
_COLUMNS = {
    "origin": pa.string(),
    "metric": pa.string(),
    **dict.fromkeys(("value", "percent", "p50", "published_p50"), pa.float64()),
    "n": pa.int64(),
    "left_out": pa.int64(),
}


def _curve(
    origin: str, metric: str, value: np.ndarray, percent: np.ndarray, n: int | None
) -> _Points:
    """Return a curve, thinned: its ends stay, as do its points at even steps between."""
    # Some published points were read off a plot and step back a little in percent.
    rising = np.maximum.accumulate(percent)
    kept = np.arange(len(value))
    if len(value) > MOST_POINTS:
        kept = np.unique(np.linspace(0, len(value) - 1, MOST_POINTS).round().astype(int))
    return {
        "origin": origin,
        "metric": metric,
        "value": value[kept],
        "percent": percent[kept],
        "p50": float(np.interp(50.0, rising, value)),
        "published_p50": PUBLISHED_P50.get(metric, {}).get(origin) if n is None else None,
        "n": n,
        "left_out": 0,
    }


def _table(curves: Sequence[_Points]) -> pa.Table:
    return pa.concat_tables(
        pa.table(
            {
                name: pa.array(curve[name], kind)
                if name in ("value", "percent")
                else pa.repeat(pa.scalar(curve[name], kind), len(curve["value"]))
                for name, kind in _COLUMNS.items()
            }
        )
        for curve in curves
    )
