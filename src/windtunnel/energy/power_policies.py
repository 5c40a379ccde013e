"""What a run is to do about power: `PowerCap`, `StartShift`, `NodeSleep`, and how they are written.

Each is written in words (``cap.csv,limits=optimised``), in a TOML file with the same keys, or as
plain data; `windtunnel.energy.governing` turns them into what the engine needs.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Self

import msgspec
import numpy as np

from windtunnel.checked import checked_choice, checked_number
from windtunnel.energy.intensity import Series
from windtunnel.energy.series_files import WATTS, parse_series
from windtunnel.errors import SpecError, quote
from windtunnel.plugins import parameter_value
from windtunnel.sim.power.ces import PUBLISHED, CesRule
from windtunnel.time_span import seconds
from windtunnel.toml_file import read_toml, struct_of

#: (time in s, value from then on): a series' rows.
Rows = tuple[tuple[float, float], ...]
#: How the limits of running jobs are chosen under a cap.
LIMITS: tuple[str, ...] = ("none", "uniform", "optimised")
#: What of a job counts towards the cap: what was measured, or its limit.
COUNTS: tuple[str, ...] = ("measured", "limit")
#: Where a shifted job's run time is known from.
LENGTHS: tuple[str, ...] = ("perfect", "recorded")
#: Nodes in use a day or a week ago forecast those of today; or the last number does.
FORECASTS: dict[str, float] = {"last": 0.0, "daily": 86_400.0, "weekly": 604_800.0}
#: A cap of a facility, W, at most: a thousand large power stations.
MOST_WATTS = 1e12
#: The longest a job may be made to wait, s: every change of the series until then is looked at.
LONGEST_DELAY = 3650 * 86_400.0
_WATTS = {"MW": 1e6, "kW": 1e3, "W": 1.0}


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What three policies have in common: how they are written."""

    #: The option's name, for messages; the key of a first word without ``=``.
    OPTION: ClassVar[str] = ""
    FIRST: ClassVar[str] = ""
    #: Keys that words may name without ``=``, for true; keys besides the fields, for messages.
    FLAGS: ClassVar[tuple[str, ...]] = ()
    MORE_KEYS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, given: Self | str | float | dict[str, Any]) -> Self:
        """Return the policy that was given as an object, in words, as a file or plain data.

        Raises:
            SpecError: an unknown key (the nearest is suggested), a wrong type or value.
            TraceError: a series cannot be read.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, int | float) and not isinstance(given, bool) and cls.FIRST:
            given = {cls.FIRST: given}
        if isinstance(given, str):
            given = cls.words(given)
        if not isinstance(given, dict):
            message = f"found {quote(given)}; expected words, a file or a {cls.__name__}"
            raise SpecError(cls.OPTION, message)
        return cls.from_mapping(given)

    @classmethod
    def words(cls, text: str) -> dict[str, Any]:
        """Return the plain data that words, or the name of a TOML file, stand for.

        Raises:
            SpecError: the words are no ``NAME=VALUE``, or the file cannot be read.
        """
        if text.strip().endswith(".toml"):
            return read_toml(text.strip())
        raw: dict[str, Any] = {}
        for index, part in enumerate(text.split(",")):
            key, found, value = (piece.strip() for piece in part.partition("="))
            if not found and index == 0 and cls.FIRST and key not in cls.FLAGS:
                key, value = cls.FIRST, key
            elif not found:
                value = "true" if key in cls.FLAGS else ""
            if not key or not value:
                message = f"found {quote(part)}; expected NAME=VALUE, separated by commas"
                raise SpecError(cls.OPTION, message)
            if key in raw:
                raise SpecError(cls.OPTION, f"found {key} twice; expected it once")
            raw[key] = _plain(value)
        return raw

    @classmethod
    def from_mapping(cls, raw: dict[str, Any]) -> Self:
        """Build the policy from plain data (parsed TOML, JSON or words).

        Raises:
            SpecError, TraceError: as `read`.
        """
        data = cls._prepared(dict(raw))
        for key in data:
            if key not in cls.__struct_fields__:
                known = (*cls.__struct_fields__, *cls.MORE_KEYS)
                raise SpecError.unknown(f"{cls.OPTION}: $.{key}", key, known)
        return struct_of(cls, data, cls.OPTION)

    @classmethod
    def _prepared(cls, raw: dict[str, Any]) -> dict[str, Any]:
        return raw

    def to_mapping(self) -> dict[str, Any]:
        """Return the policy as plain data that `from_mapping` reads back."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data


class PowerCap(Written, frozen=True, forbid_unknown_fields=True):
    """The facility's draw, PUE included, is never above a cap.

    A job starts only where the draw stays within the cap. With ``limits`` running jobs with
    measured tables are slowed down to make room: all to one power limit (``uniform``) or each to
    its own, so that the mean slow-down is least (``optimised``). Where the cap falls below what
    that saves, jobs are stopped, the last started first, and wait again with their work saved.

    Attributes:
        rows: (time in s, W from then on), repeated as `windtunnel.energy.Series` are. Written as
            ``watts``: a number, ``450kW``, or a CSV file.
        limits: one of `LIMITS`.
        count: one of `COUNTS`. Measured draws may be above their limit.
    """

    OPTION: ClassVar[str] = "power_cap"
    FIRST: ClassVar[str] = "watts"
    MORE_KEYS: ClassVar[tuple[str, ...]] = ("watts",)

    rows: Rows
    limits: str = "none"
    count: str = "measured"

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SpecError: an unknown name, or a cap that is not above 0.
        """
        for name, known in (("limits", LIMITS), ("count", COUNTS)):
            checked_choice(f"power_cap.{name}", getattr(self, name), known)
        if not all(0 < watts <= MOST_WATTS for _, watts in self.rows):
            message = f"expected W above 0, and at most {MOST_WATTS:g}, at all times"
            raise SpecError("power_cap.watts", message)
        self.series()

    def series(self) -> Series:
        """Return the cap over time, W."""
        return _series(self.rows, "power_cap.watts")

    @classmethod
    def _prepared(cls, raw: dict[str, Any]) -> dict[str, Any]:
        if "watts" not in raw:
            if "rows" not in raw:
                raise SpecError("power_cap", "expected watts: a number, 450kW, or a CSV file")
            return raw
        given = str(raw.pop("watts")).strip()
        for unit, size in _WATTS.items():
            number = given.removesuffix(unit).strip()
            if given.endswith(unit) and number.replace(".", "", 1).isdecimal():
                given = str(float(number) * size)
                break
        raw["rows"] = _rows(parse_series(given, WATTS, name="power_cap.watts"))
        return raw


class StartShift(Written, frozen=True, forbid_unknown_fields=True):
    """Jobs wait for times at which a kilowatt-hour emits, or costs, less.

    Attributes:
        rows: (time in s, value from then on), repeated. Written as ``series``: a number, a CSV
            file or a `Series`; without it the run's ``carbon``, else its ``tariff``.
        max_delay: a job must be over so many s after it would be if it started at its submission;
            seconds or ``12h``. None = only jobs with a deadline are shifted.
        deadlines: the jobs' column ``deadline`` (s on the clock of ``submit_time``) goes before
            ``max_delay``, where it is known.
        interruptible: running jobs may be stopped, and go on at a better time.
        lengths: one of `LENGTHS`: run times are known exactly, or as requested.
        every: jobs start only so many s after their submission, or a multiple; None = any time.
        forecast_error: standard deviation of the logarithm of forecast over truth, a row of the
            series at a time, drawn with the run's seed.
        workloads: kinds of work that are shifted, joined by ``|`` in words; () = all.
        fill: share of the GPUs that plans may fill: jobs spread over the good hours.
        blind: every job takes its best time, whatever is free by then.
    """

    OPTION: ClassVar[str] = "shift"
    FLAGS: ClassVar[tuple[str, ...]] = ("deadlines", "interruptible", "blind")
    MORE_KEYS: ClassVar[tuple[str, ...]] = ("series",)

    rows: Rows
    max_delay: float | str | None = None
    deadlines: bool = False
    interruptible: bool = False
    lengths: str = "perfect"
    every: float | str | None = None
    forecast_error: float = 0.0
    workloads: tuple[str, ...] = ()
    fill: float = 0.9
    blind: bool = False

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SpecError: an unknown name, a number out of range, or no deadline of any kind.
        """
        checked_choice("shift.lengths", self.lengths, LENGTHS)
        if self.max_delay is None and not self.deadlines:
            raise SpecError("shift", "expected max_delay=12h, or deadlines")
        if seconds("shift.max_delay", self.max_delay or 0.0) > LONGEST_DELAY:
            message = f"found {quote(self.max_delay)}; expected at most 3650d."
            raise SpecError("shift.max_delay", message)
        if self.every is not None:
            seconds("shift.every", self.every, positive=True)
            if self.interruptible:
                raise SpecError("shift.every", "of no use to jobs that may be interrupted")
        checked_number("shift.forecast_error", self.forecast_error, least=0)
        checked_number("shift.fill", self.fill, "a share above 0, 1 at most", above=0, most=1)
        _series(self.rows, "shift.series")

    def forecast(self, seed: int) -> Series:
        """Return what is forecast over time.

        Args:
            seed: of the errors.
        """
        series = _series(self.rows, "shift.series")
        if not self.forecast_error:
            return series
        errors = np.random.default_rng([seed, 8]).standard_normal(len(series.values))
        spread = self.forecast_error
        factors = np.exp(spread * errors - spread**2 / 2)  # 1 on average
        return Series(series.time, series.values * factors, series.name)

    @classmethod
    def _prepared(cls, raw: dict[str, Any]) -> dict[str, Any]:
        if "series" in raw:
            raw["rows"] = _rows(parse_series(raw.pop("series"), name="shift.series"))
        if "rows" not in raw:
            message = "nothing says when a kWh is better; expected carbon or tariff (--carbon, "
            message += "--tariff), or series=FILE, a CSV file of time and value per kWh."
            raise SpecError("shift", message)
        if isinstance(raw.get("workloads"), str):
            raw["workloads"] = tuple(raw["workloads"].split("|"))
        return raw


class NodeSleep(Written, frozen=True, forbid_unknown_fields=True):
    """Idle nodes are powered off, after Helios' CES (Hu et al., SC'21; `windtunnel.sim.power.ces`).

    Attributes:
        wake_time: s from the call until a node can run jobs, drawing what an idle one does; or
            ``5m``.
        step: s between two looks at the cluster.
        forecast: one of `FORECASTS`.
        history, future: steps looked back and ahead.
        his, fut: least fall of use against the history and the forecast, nodes.
        de: least nodes to put to sleep at once.
        buffer: nodes awake beyond those in use.
        keep: steps after waking in which no node falls asleep.
    """

    OPTION: ClassVar[str] = "node_sleep"
    FIRST: ClassVar[str] = "rule"
    MORE_KEYS: ClassVar[tuple[str, ...]] = ("rule",)

    wake_time: float | str = 300.0
    step: float | str = 600.0
    forecast: str = "daily"
    history: int = 6
    future: int = 18
    his: float = 1.0
    fut: float = 1.0
    de: int = 1
    buffer: int = 5
    keep: int = 12

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            SpecError: an unknown name, or a number out of range.
        """
        seconds("node_sleep.wake_time", self.wake_time)
        seconds("node_sleep.step", self.step, positive=True)
        checked_choice("node_sleep.forecast", self.forecast, FORECASTS)
        leasts = {"history": 1, "future": 1, "de": 1, "buffer": 0, "keep": 0}
        for name, least in leasts.items():
            checked_number(
                f"node_sleep.{name}", getattr(self, name), f"at least {least}", least=least
            )

    def rule(self) -> CesRule:
        """Return the rule's numbers."""
        return CesRule(**{one.name: getattr(self, one.name) for one in fields(CesRule)})

    @classmethod
    def _prepared(cls, raw: dict[str, Any]) -> dict[str, Any]:
        name = raw.pop("rule", None)
        if name is None:
            return raw
        checked_choice("node_sleep.rule", name, PUBLISHED)
        return {**vars(PUBLISHED[name]), **raw}


def _rows(series: Series) -> Rows:
    return tuple(zip(series.time.tolist(), series.values.tolist(), strict=True))


def _series(rows: Rows, name: str) -> Series:
    pairs = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return Series(pairs[:, 0], pairs[:, 1], name)


def _plain(value: str) -> Any:
    """Return a word's value as what TOML would have: a number, a truth, or text."""
    if value in ("true", "false"):
        return value == "true"
    return parameter_value(value)
