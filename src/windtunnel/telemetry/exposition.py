"""Lines of the Prometheus text exposition format, version 0.0.4, and what OpenMetrics adds to it.

A line is a comment (``# HELP``, ``# TYPE`` ...) or one reading: a name, labels in braces, a value,
and perhaps the time of the reading. OpenMetrics may put an exemplar behind (``# {...} ...``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
