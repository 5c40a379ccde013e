"""Lines of the Prometheus text exposition format, version 0.0.4, and what OpenMetrics adds to it.

A line is a comment (``# HELP``, ``# TYPE`` ...) or one reading: a name, labels in braces, a value,
and perhaps the time of the reading. OpenMetrics may put an exemplar behind (``# {...} ...``).

What the labels of a GPU exporter's series say: node, GPU and job; and which values are none.

NVIDIA's DCGM exporter writes ``gpu``, ``device``, ``Hostname``, on MIG GPUs ``GPU_I_ID``, and maps
GPUs to jobs by ``hpc_job`` (Slurm) or ``pod`` and ``namespace`` (Kubernetes). A Prometheus server
whose own labels of the same name win renames the exporter's to ``exported_...``: those are the
workload's then. A value that DCGM could not get is a constant (``dcgm_structs.h``): 2^47 and 15
more for real numbers, 0x7ffffff0 for 32 bits, 0x7ffffffffffffff0 for 64.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from windtunnel.errors import TraceError

_READING = re.compile(
    r"""(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*
        (?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]*
        (?P<value>[^\s_{}"]+)
        (?:[ \t]+(?P<time>[+-]?[0-9.eE+-]+))?[ \t]*
        (?:\#[ \t].*)?$""",
    re.VERBOSE,
)
_LABEL = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")
_MEANING = {"n": "\n", "\\": "\\", '"': '"'}


class Reading(NamedTuple):
    """One line.

    Attributes:
        name: the metric.
        labels: the text between the braces, as it stands; see `labels_of`.
        value: may be NaN or infinite.
        time: the number behind the value, None = the line has none.
        whole: that number was written without a decimal point.
    """

    name: str
    labels: str
    value: float
    time: float | None
    whole: bool


def reading_of(text: str, file: str, line: int) -> Reading | None:
    """Return the reading of a line, None for a comment or a blank line.

    Raises:
        TraceError: it is neither.

    >>> reading_of('up{job="x"} 1 1000', "f", 1)
    Reading(name='up', labels='job="x"', value=1.0, time=1000.0, whole=True)
    """
    text = text.strip()
    if not text or text.startswith("#"):
        return None
    match = _READING.match(text)
    if match is None:
        raise _no_reading(file, line, text)
    try:
        value = float(match["value"])
        time = None if match["time"] is None else float(match["time"])
    except ValueError as error:
        raise _no_reading(file, line, text) from error
    whole = match["time"] is not None and "." not in match["time"]
    return Reading(match["name"], match["labels"] or "", value, time, whole)


def labels_of(text: str, file: str, line: int) -> dict[str, str]:
    r"""Return the labels between a reading's braces.

    Raises:
        TraceError: they are not labels, or one stands twice.

    >>> labels_of(r'a="1", b="x\"y",', "f", 1)
    {'a': '1', 'b': 'x"y'}
    """
    found: dict[str, str] = {}
    at = 0
    while text[at:].strip():
        match = _LABEL.match(text, at)
        if match is None or match[1] in found:
            raise TraceError(
                file, 'labels as name="value", each once', row=line, value=text[at:].strip()
            )
        found[match[1]] = _ESCAPE.sub(lambda m: _MEANING.get(m[1], m[0]), match[2])
        at = match.end()
    return found


def _no_reading(file: str, line: int, text: str) -> TraceError:
    return TraceError(
        file,
        'a reading as name{label="value"} number [time], or a comment',
        row=line,
        value=text,
        hint="If it is the last line, the file seems to be cut.",
    )


#: Labels that name the node, the first that is there counts.
NODE_LABELS = (
    *("Hostname", "hostname", "exported_node", "node", "kubernetes_node", "exported_instance"),
    "instance",
)
_PORT = re.compile(r":\d+$")
_DEVICE = re.compile(r"^nvidia(\d+)$")
_BLANK_CODES = 16
_FP64_BLANK = 2.0**47
_INT32_BLANK = 0x7FFFFFF0
_INT64_BLANK = float(0x7FFFFFFFFFFFFC00)  # the last float64 below 2**63, where these codes begin
#: Metrics that only grow: a reading of any size below 2^47 is a reading.
_COUNTERS = ("TOTAL", "COUNTER", "BYTES", "TIME")


class Place(NamedTuple):
    """Where a series was measured.

    Attributes:
        node: the node, None where no label tells.
        gpu: its GPU, ``3``, or ``3/1`` for instance 1 of a MIG GPU; None = the node as a whole.
        job_id: the job: ``hpc_job``, or ``namespace/pod``; None = idle, or not known.
    """

    node: str | None
    gpu: str | None
    job_id: str | None


def place_of(labels: dict[str, str]) -> Place:
    """Return where a series was measured; an empty label says nothing.

    >>> place_of({"gpu": "3", "GPU_I_ID": "1", "Hostname": "n1", "pod": "a", "namespace": "x"})
    Place(node='n1', gpu='3/1', job_id='x/a')
    """
    given = {name: value for name, value in labels.items() if value}
    node = next((given[name] for name in NODE_LABELS if name in given), None)
    device = _DEVICE.match(given.get("device", ""))
    gpu = given.get("gpu", device[1] if device else None)
    if gpu is not None and "GPU_I_ID" in given:
        gpu = f"{gpu}/{given['GPU_I_ID']}"
    return Place(None if node is None else _PORT.sub("", node), gpu, _job(given))


def _job(given: dict[str, str]) -> str | None:
    for name in ("exported_hpc_job", "hpc_job"):
        if name in given:
            return given[name]
    for before in ("exported_", ""):
        if f"{before}pod" in given:
            space = given.get(f"{before}namespace")
            pod = given[f"{before}pod"]
            return pod if space is None else f"{space}/{pod}"
    return None


def without_blanks(metric: str, values: np.ndarray) -> np.ndarray:
    """Return values with DCGM's constants for "no value" as NaN.

    Args:
        metric: the series' name; the 32-bit constants may be readings of a counter.
        values: float64, shape (rows,).
    """
    blank = (values >= _FP64_BLANK) & (values < _FP64_BLANK + _BLANK_CODES)
    blank |= (values >= _INT64_BLANK) & np.isfinite(values)
    if not any(word in metric for word in _COUNTERS):
        blank |= (values >= _INT32_BLANK) & (values < _INT32_BLANK + _BLANK_CODES)
    return np.where(blank, np.nan, values)
