"""A trace's name and what stands behind it: ``philly:from=2017-10-09:to=2017-10-16:vc=6214e9``.

A setting is an option of what reads or makes the trace (``jobs=2000``, ``zone=Asia/Shanghai``), or
a cut (`windtunnel.traces.cuts`). Settings begin at the first ``:word=``; a part behind them that
has no ``word=`` belongs to the one before it, so that ``from=2017-10-09T08:30`` is one setting.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote
from windtunnel.traces.cuts import CUTS, SEEDED, Cut, is_cut, parse_cut

if TYPE_CHECKING:
    from collections.abc import Callable

#: What the names of traces that are drawn from published statistics begin with.
SYNTHETIC = "synthetic:"
#: Endings of files that `windtunnel fit` writes, from which traces are drawn.
_TWINS = ("twin.toml", "twin.json")
_SETTING = re.compile(r":(?=[A-Za-z][A-Za-z_-]*=)")
#: What was an option of commands, or a key of a study's traces -> where it stands now.
MOVED = {
    setting.partition("=")[0]: f"stands in the trace's name now: {name}:{setting}."
    for name, setting in (
        ("synthetic:kalos", "jobs=2000"),
        ("synthetic:kalos", "load=0.9"),
        ("synthetic:kalos", "seed=1"),
        ("synthetic:kalos", "cpu_jobs=yes"),
        ("synthetic:pai", "tasks=yes"),
    )
}
#: Words for an option that is on or off.
_SWITCH = {"yes": True, "true": True, "no": False, "false": False}


@dataclass(frozen=True)
class TraceName:
    """A trace as it is named on a command line or in a study.

    Attributes:
        base: a published trace, ``synthetic:NAME``, a path, or ``-``.
        settings: word and value of what stands behind it, in order.

    >>> TraceName.parse("synthetic:kalos:jobs=2000:from=2023-03-01T08:00").base
    'synthetic:kalos'
    """

    base: str
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str | Path) -> TraceName:
        """Return the parts of a name; a file that is called so, and a `Path`, have no settings."""
        base, *parts = _SETTING.split(str(text))
        if not parts or isinstance(text, Path) or Path(text).is_file():
            return cls(str(text))
        pairs = (part.partition("=") for part in parts)
        return cls(base, tuple((word.replace("-", "_"), value) for word, _, value in pairs))

    def __str__(self) -> str:
        return ":".join((self.base, *(f"{word}={value}" for word, value in self.settings)))

    @property
    def is_made(self) -> bool:
        """Whether the trace is drawn anew for each seed, instead of read."""
        word = self.base.lower()
        return word.startswith(SYNTHETIC) or word.endswith(_TWINS)

    @property
    def is_drawn_again(self) -> bool:
        """Whether the seed tells which of several windows it is, or what is drawn of its blocks."""
        return any(word in {"windows", "blocks"} for word, _ in self.settings)

    @property
    def is_drawn(self) -> bool:
        """Whether each seed stands for other jobs: made, a window of a log, or drawn from it."""
        return self.is_made or self.is_drawn_again

    def with_seed(self, seed: int) -> TraceName:
        """Return the name with a seed behind it."""
        return replace(self, settings=(*self.settings, ("seed", str(seed))))

    @property
    def says_seed(self) -> bool:
        """Whether the name says which seed draws the trace."""
        return any(word == "seed" for word, _ in self.settings)

    def options(self, function: Callable[..., Any], skip: int) -> tuple[dict[str, Any], list[Cut]]:
        """Return what the settings mean to a reader or generator, and the cuts among them.

        Args:
            function: what reads or makes the trace.
            skip: how many of its first parameters are no options.

        Raises:
            SpecError: a word is unknown or given twice, or a value is of another kind.
        """
        parameters = list(inspect.signature(function).parameters.values())[skip:]
        kinds = {one.name: str(one.annotation) for one in parameters if one.kind != one.VAR_KEYWORD}
        options: dict[str, Any] = {}
        cuts: list[tuple[str, str]] = []
        for word, value in self.settings:
            where = f"{self.base}:{word}"
            if is_cut(word, value) or (word not in kinds and word in CUTS):
                cuts.append((word, value))
            elif word in options:
                raise SpecError(where, "is given twice; give it once.")
            elif word in kinds:
                options[word] = _typed(where, value, kinds[word])
            elif word == "seed" and any(other in SEEDED for other, _ in self.settings):
                continue
            else:
                raise SpecError.unknown(where, word, {*CUTS, *kinds})
        seed = options.get("seed", dict(self.settings).get("seed", 0))
        sampled = _typed(f"{self.base}:seed", str(seed), "int")
        windows = dict(cuts).get("windows", "")
        if "seed" in options and windows.isdecimal() and int(windows):
            # Of a trace that is made, the seeds go through the windows of one draw, then the next.
            options["seed"], sampled = divmod(sampled, int(windows))
        return options, [parse_cut(f"{self.base}:{w}", w, value, sampled) for w, value in cuts]


def _typed(where: str, value: str, kind: str) -> Any:
    """Return an option's value as its parameter's annotation wants it."""
    words = set(re.findall(r"\w+", kind))
    try:
        if "bool" in words:
            return _SWITCH[value.lower()]
        if "int" in words:
            return int(value)
        return float(value) if "float" in words else value
    except (KeyError, ValueError) as error:
        expected = "a whole number" if "int" in words else "a number"
        expected = "yes or no" if "bool" in words else expected
        raise SpecError(where, f"found {quote(value)}; expected {expected}.") from error
