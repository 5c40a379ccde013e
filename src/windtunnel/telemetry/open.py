"""`open_telemetry`: one way in for every format of telemetry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.telemetry.acme_wide import AcmeWide
from windtunnel.telemetry.dcgm import Dcgm
from windtunnel.telemetry.energy import PowerFromEnergy
from windtunnel.telemetry.genai import GenaiTelemetry
from windtunnel.telemetry.ipmi import FILES as IPMI_FILES
from windtunnel.telemetry.ipmi import Ipmi
from windtunnel.telemetry.philly_util import CPU, GPU, MEM, PhillyUtil
from windtunnel.telemetry.prometheus_json import PrometheusJson
from windtunnel.telemetry.stream import Telemetry
from windtunnel.traces.header import begun, header_has
from windtunnel.traces.readers import check_options
from windtunnel.traces.source import read_head

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from windtunnel.telemetry.stream import Source

#: Philly's formats and the file that each reads.
_PHILLY = {"philly-gpu-util": GPU, "philly-cpu-util": CPU, "philly-mem-util": MEM}
_OPENERS: dict[str, Callable[..., Source]] = {
    "acme-wide": AcmeWide,
    "ipmi": Ipmi,
    "dcgm": Dcgm,
    "prometheus-json": PrometheusJson,
    "genai": GenaiTelemetry,
}
#: The formats, by the names that users type.
TELEMETRY_FORMATS: tuple[str, ...] = (*_OPENERS, *_PHILLY)
#: Formats whose samples may be readings of an energy counter.
_COUNTING = ("dcgm", "prometheus-json")


def open_telemetry(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002 (as in open_trace)
    metric: str | Collection[str] | None = None,
    epoch: str | float | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Telemetry:
    """Open telemetry; nothing is read yet but the first bytes.

    Args:
        path: a file, or a folder of files of one format.
        format: one of `TELEMETRY_FORMATS`; None = found by the first bytes.
        metric: read only this one, or these.
        epoch: UTC instant of time 0, ISO 8601 text or seconds since 1970; None = 1970. Give a
            trace's ``metadata.epoch`` to have the samples in the trace's time.
        progress: called with (bytes read, bytes in all) as the files are read.
        options: what the format takes: ``zone`` (times without an offset), ``clean`` and
            ``gpu_mem_mib`` (acme-wide), ``by_type`` (ipmi), ``time`` and ``interval`` (dcgm),
            ``bad_rows`` (philly); ``energy="power"`` turns the energy counter of dcgm and
            prometheus-json into power.

    Returns:
        The telemetry: `Telemetry.batches`, `Telemetry.relation`.

    Raises:
        SpecError: an unknown format, metric or option.
        TraceError: there is no such file, or its format cannot be found.
    """
    name = format if format is not None else _format_of(Path(path))
    if name not in TELEMETRY_FORMATS:
        raise SpecError.unknown("format", name, TELEMETRY_FORMATS)
    chosen = None if metric is None else (metric,) if isinstance(metric, str) else tuple(metric)
    energy = options.pop("energy", "counter") if name in _COUNTING else "counter"
    if energy not in {"counter", "power"}:
        raise SpecError.unknown("energy", str(energy), ("counter", "power"))
    if name in _PHILLY:
        check_options(PhillyUtil, options, where=f"options of {name}", skip=2)
        source: Source = PhillyUtil(path, _PHILLY[name], metric=chosen, **options)
    else:
        opener = _OPENERS[name]
        check_options(opener, options, where=f"options of {name}", skip=1)
        source = opener(path, metric=chosen, **options)
    if energy == "power":
        source = PowerFromEnergy(source)
    return Telemetry(str(path), name, source, epoch=epoch, progress=progress)


def _format_of(path: Path) -> str:
    """Return the format of a file or folder."""
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir())
        if any(name in IPMI_FILES for name in names):
            return "ipmi"
        for name in names:
            found = _format_of_file(path / name)
            if found is not None:
                return found
    elif not path.is_file():
        raise TraceError(str(path), "a file that exists")
    else:
        found = _format_of_file(path)
        if found is not None:
            return found
    raise SpecError(
        str(path),
        f"cannot tell the format of {quote(path.name)}; "
        f"name it with format= (--format): one of {', '.join(TELEMETRY_FORMATS)}.",
    )


def _format_of_file(path: Path) -> str | None:
    """Return the format that a file's name and first bytes show, None where they do not."""
    if path.name in IPMI_FILES:
        return "ipmi"
    head = read_head(path)
    for name, columns in (
        ("philly-gpu-util", ("time", "machineId", "gpu0_util")),
        ("philly-cpu-util", ("time", "machine_id", "cpu_util")),
        ("philly-mem-util", ("time", "machine_id", "mem_total")),
        ("genai", ("timestamp_anon", "container_ip", "value")),
        ("acme-wide", ("Time",)),
    ):
        if header_has(head, *columns):
            return name
    if head.startswith(b"PAR1"):
        return "genai"
    start = begun(head)
    if start.startswith(b"{"):
        return "prometheus-json"
    if start.startswith((b"# HELP", b"# TYPE", b"DCGM_")):
        return "dcgm"
    # A wide header is longer than what was looked at, so its columns cannot be split yet.
    return "acme-wide" if start.startswith((b"Time,", b'"Time",')) else None
