"""Numbers as text for people: durations, counts, shares, GPU time. Pure functions, units always.

Unknown values (None or NaN) are an en dash. A minus is U+2212, so that columns of numerals align.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: What stands where there is no number.
UNKNOWN = "\u2013"
#: The typographic minus.
MINUS = "\u2212"
#: The multiplication sign.
TIMES = "\u00d7"

#: Times under this are rounding errors of sums, s.
DUST = 1e-6

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def is_known(value: Any) -> bool:
    """Return whether ``value`` is a number: neither None nor NaN."""
    return value is not None and not math.isnan(value)


def duration(seconds: float | None) -> str:
    """Return a time span in its two largest units.

    >>> duration(7530.0), duration(59.7), duration(0.25), duration(0)
    ('2 h 06 m', '1 m 00 s', '0.25 s', '0 s')
    >>> duration(3 * 86400 + 4 * 3600), duration(-90), duration(None)
    ('3 d 04 h', '\u22121 m 30 s', '\u2013')
    """
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    if math.isinf(seconds):
        return "never"
    if abs(seconds) < DUST:
        return "0 s"
    return MINUS * (seconds < 0) + _positive_duration(abs(seconds))


def _positive_duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < _MINUTE:
        if seconds < 0.01:  # noqa: PLR2004
            return "< 0.01 s"
        # Two digits are plenty: 0.25 s, 2.6 s, 42 s.
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{whole} s"  # noqa: PLR2004
    if whole < _HOUR:
        return f"{whole // _MINUTE} m {whole % _MINUTE:02d} s"
    minutes = round(seconds / _MINUTE)
    if minutes < _DAY // _MINUTE:
        return f"{minutes // 60} h {minutes % 60:02d} m"
    hours = round(seconds / _HOUR)
    return f"{hours // 24:,} d {hours % 24:02d} h"


def exact_seconds(seconds: float | None) -> str:
    """Return a time span in seconds, for tooltips.

    >>> exact_seconds(7530.25), exact_seconds(None)
    ('7,530.25 s', 'unknown')
    """
    if seconds is None or math.isnan(seconds):
        return "unknown"
    text = f"{seconds:,.3f}".rstrip("0").rstrip(".") if math.isfinite(seconds) else str(seconds)
    return f"{text.replace('-', MINUS)} s"


def count(number: float | None) -> str:
    """Return a whole number with separators.

    >>> count(1234567), count(None)
    ('1,234,567', '\u2013')
    """
    if number is None or math.isnan(number):
        return UNKNOWN
    return f"{round(number):,}".replace("-", MINUS)


def number(value: float | None) -> str:
    """Return a plain number with about three digits, so that a column of them aligns.

    >>> number(1.23456), number(48.0), number(12345.6)
    ('1.23', '48.0', '12,346')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    if value == 0:
        return "0"
    size = abs(value)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0  # noqa: PLR2004
    text = f"{value:,.{decimals}f}"
    return text.replace("-", MINUS)


def percent(fraction: float | None) -> str:
    """Return a fraction as per cent.

    >>> percent(0.61), percent(0.054), percent(0.0002), percent(0.0), percent(0.9996)
    ('61 %', '5.4 %', '< 0.1 %', '0 %', '99.9 %')
    """
    if fraction is None or math.isnan(fraction):
        return UNKNOWN
    value = abs(fraction) * 100
    sign = MINUS if fraction < 0 else ""
    if value == 0:
        return "0 %"
    if value < 0.1:  # noqa: PLR2004
        return f"{sign}< 0.1 %"
    # A share just under the whole must not read as the whole.
    text = f"{value:.1f}" if value < 9.95 else f"{value:,.0f}"  # noqa: PLR2004
    if text == "100" and 99 < value < 100:  # noqa: PLR2004
        text = f"{math.floor(value * 10) / 10:.1f}"
    return f"{sign}{text.removesuffix('.0')} %"


def index(value: float | None) -> str:
    """Return an index of 0 to 1 with three digits; only 1 itself reads as 1.

    >>> index(0.96931), index(0.99996), index(1.0), index(None)
    ('0.969', '0.999', '1', '\u2013')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    if value >= 1 - DUST:
        return "1"
    return f"{min(value, 0.999):.3f}"


def gpu_time(seconds: float | None) -> str:
    """Return GPU-seconds as GPU-hours.

    >>> gpu_time(7.2e9), gpu_time(1800), gpu_time(None)
    ('2,000,000 GPU h', '0.50 GPU h', '\u2013')
    """
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    return f"{number(seconds / _HOUR)} GPU h"


def unit_for(
    value: float, units: Sequence[tuple[str, float]], least: float = 1.0
) -> tuple[str, float]:
    """Return the first (name, size) of units of which a value is at least so many, else the last.

    >>> unit_for(7200, (("h", 3600), ("min", 60))), unit_for(7200, (("h", 3600), ("min", 60)), 3)
    (('h', 3600), ('min', 60))
    """
    return next((unit for unit in units if abs(value) >= least * unit[1]), units[-1])


def _scaled(value: float | None, units: Sequence[tuple[str, float]]) -> str:
    """Return a value in the largest unit of which there is one at least, else in the smallest."""
    if value is None or math.isnan(value):
        return UNKNOWN
    name, size = unit_for(value, units)
    return f"{number(value / size)} {name}"


def energy(joules: float | None) -> str:
    """Return an energy in kWh, or MWh and GWh.

    >>> energy(3.6e6), energy(9e9), energy(0.0), energy(None)
    ('1.00 kWh', '2.50 MWh', '0 kWh', '\u2013')
    """
    return _scaled(joules, (("GWh", 3.6e12), ("MWh", 3.6e9), ("kWh", 3.6e6)))


def power(watts: float | None) -> str:
    """Return a power in W, kW or MW.

    >>> power(450), power(45e3), power(1.2e6)
    ('450 W', '45.0 kW', '1.20 MW')
    """
    return _scaled(watts, (("MW", 1e6), ("kW", 1e3), ("W", 1.0)))


def carbon(kilograms: float | None) -> str:
    """Return emissions in kg or t of CO2eq.

    >>> carbon(12.0), carbon(4200.0)
    ('12.0 kg CO2eq', '4.20 t CO2eq')
    """
    text = _scaled(kilograms, (("t", 1e3), ("kg", 1.0)))
    return text if text == UNKNOWN else f"{text} CO2eq"


def node_time(seconds: float | None) -> str:
    """Return node-seconds as node-hours.

    >>> node_time(7200.0)
    '2.00 node h'
    """
    return _scaled(seconds, (("node h", _HOUR),))


def times(ratio: float | None) -> str:
    """Return a ratio as a factor.

    >>> times(3.21), times(12.6), times(1234)
    ('3.2\u00d7', '13\u00d7', '1,234\u00d7')
    """
    if ratio is None or math.isnan(ratio):
        return UNKNOWN
    if math.isinf(ratio):
        return f"\u221e{TIMES}"
    return f"{ratio:.1f}{TIMES}" if ratio < 9.95 else f"{ratio:,.0f}{TIMES}"  # noqa: PLR2004


def factor(ratio: float) -> str:
    """Return a ratio in a sentence: one decimal where it is small, without a trailing zero.

    >>> factor(3.21), factor(9.0), factor(128.4)
    ('3.2', '9', '128')
    """
    return f"{ratio:.1f}".removesuffix(".0") if ratio < 9.95 else f"{ratio:,.0f}"  # noqa: PLR2004


_UNIT_GAP = re.compile(r"(?<=\d) (?=(?:d|h|m|s|%|GPU h)(?![\w]))|(?<=[=<]) (?=\d)|(?<=n) (?==)")
_PART_GAP = re.compile(r"(?<=\d\u00a0[dhm]) (?=\d\d\u00a0[hms])")


def glue(text: str) -> str:
    r"""Return ``text`` with no-break spaces inside quantities, for running text on a page.

    >>> glue("waits 2 h 05 m, 61 % of jobs (n = 3)").split(" ")
    ['waits', '2\xa0h\xa005\xa0m,', '61\xa0%', 'of', 'jobs', '(n\xa0=\xa03)']
    """
    return _PART_GAP.sub("\u00a0", _UNIT_GAP.sub("\u00a0", text))


def plural(amount: float, noun: str) -> str:
    """Return an amount with its noun.

    >>> plural(1, "job"), plural(1200, "job")
    ('1 job', '1,200 jobs')
    """
    return f"{count(amount)} {noun}{'s' * (amount != 1)}"


def size_text(size: str) -> str:
    """Return the class of a job's size as it is read.

    >>> size_text("5-8")
    '5\u20138'
    """
    return size.replace("-", "\u2013")


def word(text: str | None) -> str:
    """Return a text as it is; an en dash for nothing.

    >>> word("stable"), word(None)
    ('stable', '\u2013')
    """
    return text or UNKNOWN


#: Unit kind -> its formatter; the kinds of `windtunnel.report.measures.Measure`.
FORMATTERS: dict[str, Callable[[Any], str]] = {
    "duration": duration,
    "count": count,
    "number": number,
    "percent": percent,
    "index": index,
    "gpu_time": gpu_time,
    "energy": energy,
    "power": power,
    "carbon": carbon,
    "node_time": node_time,
    "word": word,
}
