"""Every error windtunnel raises on purpose, and the one place where their texts are written.

The tree::

    WindtunnelError
    ├── TraceError        a file cannot be read: where, what stands there, what was expected
    ├── SchemaError       a table breaks the schema: every violation at once
    ├── SpecError         a specification (cluster, option, name) is wrong: path in it, what to do
    ├── PolicyError       a policy asked for something impossible during a run
    ├── InfeasibleError   an optimisation model has no solution
    └── ThroughputError   nothing says how fast a job runs under a plan on some GPUs

Call sites pass facts; the classmethod constructors build the sentence. The command line prints
``str(error)`` and exits with 2; it never shows a traceback for these without ``--debug``.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Values quoted in a message are cut here: a hostile cell must not flood a terminal.
MAX_QUOTED = 80
#: So many names are listed in a sentence, ...
MAX_LISTED = 5
#: ... and a name is looked for among so many: among millions of job ids it would take minutes.
MAX_COMPARED = 20_000


def quote(value: object) -> str:
    r"""Return ``value`` as it may be shown in a message: escaped, quoted, cut to `MAX_QUOTED`.

    >>> quote("a\x1b[31m")
    "'a\\x1b[31m'"
    """
    plain = value.item() if hasattr(value, "item") else value  # a numpy scalar's own repr is noise
    text = ascii(plain)
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 4]}...{text[-1]}"


#: Words as alike as that may be the same one misspelt, as a rule (`difflib`'s ratio).
ALIKE = 0.6


def nearest(word: str, known: Iterable[str], *, alike: float = ALIKE) -> str:
    """Return ``" Did you mean 'x'?"`` for the nearest known word, or an empty string.

    Args:
        word: the word.
        known: those that there are.
        alike: how alike the two must be, 0 to 1.
    """
    match = _match(word, known, alike)
    return "" if match is None else f" Did you mean {quote(match)}?"


def _match(word: str, known: Iterable[str], alike: float = ALIKE) -> str | None:
    spelt = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), spelt, n=1, cutoff=alike)
    return spelt[matches[0]] if matches else None


def unused_names(
    who: str, kind: str, named: Iterable[str], occurring: Iterable[str | None], *, where: str
) -> list[str]:
    """Return what a reader must know of names that occur nowhere: one sentence, or none.

    Args:
        who: whoever names them, with the verb.
        kind: what they are names of.
        named: the names.
        occurring: those that there are; None = something without a name.
        where: whatever has those.

    >>> unused_names("The quotas name", "vc", ["vc1", "vc9"], ["vc1"], where="the trace")
    ["The quotas name vc 'vc9' (did you mean 'vc1'?); the trace has 'vc1'."]
    """
    known = sorted({name for name in occurring if name is not None})
    unused = sorted(set(named).difference(known))
    if not unused:
        return []
    compared = known if len(known) <= MAX_COMPARED else ()
    shown = []
    for name in unused[:MAX_LISTED]:
        match = _match(name, compared)
        shown.append(quote(name) + (f" (did you mean {quote(match)}?)" if match else ""))
    has = _first([quote(name) for name in known[:MAX_LISTED]], len(known)) or "none"
    return [f"{who} {kind} {_first(shown, len(unused))}; {where} has {has}."]


def _first(shown: Sequence[str], number: int) -> str:
    """Return the first of a number of names, and how many more there are."""
    more = number - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


class WindtunnelError(Exception):
    """Base of every error raised on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is remade from its text alone unless it says otherwise; ours take facts.
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[WindtunnelError], args: tuple[Any, ...]) -> WindtunnelError:
    """Return an error that comes from another process, without writing its text again."""
    error: WindtunnelError = kind.__new__(kind, *args)
    return error


class TraceError(WindtunnelError):
    """A trace file cannot be read.

    Attributes:
        file: the file as the user named it.
        row: 1-based line in the file, or None.
        column: column name, or None.
        value: the offending text, or None.
        expected: what should have stood there.
    """

    def __init__(
        self,
        file: str,
        expected: str,
        *,
        row: int | None = None,
        column: str | None = None,
        value: object = None,
        hint: str = "",
    ) -> None:
        self.file = file
        self.row = row
        self.column = column
        self.value = value
        self.expected = expected
        self.hint = hint
        where = str(file)
        if row is not None:
            where += f", line {row}"
        if column is not None:
            where += f", column {quote(column)}"
        found = "" if value is None else f" found {quote(value)};"
        tail = f" {hint}" if hint else ""
        super().__init__(f"{where}:{found} expected {expected}.{tail}")

    @classmethod
    def missing_column(cls, file: str, column: str, available: Sequence[str]) -> TraceError:
        """Build the error for a required column that the file lacks."""
        has = ", ".join(quote(name) for name in available[:20]) or "none"
        return cls(
            file,
            f"a column {quote(column)}",
            column=column,
            hint=f"The file has: {has}.{nearest(column, available)}",
        )


@dataclass(frozen=True)
class Violation:
    """One rule of the schema that a table breaks.

    Attributes:
        column: the column's name.
        rule: what must hold, in words.
        count: number of offending rows (0 when the column itself is at fault).
        row: first offending row: the line in the file where known, else 1-based row.
        value: the first offending value.
        unit: what ``row`` counts: lines of a file, or rows of a table in memory.
    """

    column: str
    rule: str
    count: int = 0
    row: int | None = None
    value: object = None
    unit: str = "line"

    def __str__(self) -> str:
        at = "" if self.row is None else f", first in {self.unit} {self.row}: {quote(self.value)}"
        rows = "" if self.count == 0 else f" ({self.count} row{'s' * (self.count != 1)}{at})"
        return f"column {quote(self.column)}: expected {self.rule}{rows}"


class SchemaError(WindtunnelError):
    """A jobs table breaks the schema; carries every violation, not only the first.

    Attributes:
        source: the file or object at fault.
        violations: what is wrong, in column order.
    """

    def __init__(self, source: str, violations: Sequence[Violation], hint: str = "") -> None:
        self.source = source
        self.violations = tuple(violations)
        lines = "".join(f"\n  - {v}" for v in self.violations)
        tail = f"\n{hint}" if hint else ""
        super().__init__(f"{source}: the jobs table breaks the schema:{lines}{tail}")


class SpecError(WindtunnelError):
    """A specification is wrong: a cluster, an option, a name the user typed.

    Attributes:
        path: where in the specification (``$.node_types[0].gpus``, ``--policy``).
        message: what is wrong there.
    """

    def __init__(self, path: str, message: str) -> None:
        self.path = path
        self.message = message
        super().__init__(f"{path}: {message}")

    @classmethod
    def unknown(cls, path: str, name: str, known: Iterable[str]) -> SpecError:
        """Build the error for a name that is not one of ``known``."""
        names = sorted(known)
        listed = ", ".join(names) or "none"
        return cls(path, f"unknown name {quote(name)}.{nearest(str(name), names)} Known: {listed}.")

    @classmethod
    def unused(
        cls, path: str, kind: str, name: str, occurring: Iterable[str | None], *, where: str
    ) -> SpecError:
        """Build the error for a name that occurs nowhere; see `unused_names`."""
        (sentence,) = unused_names("found", kind, [name], occurring, where=where)
        return cls(path, sentence)

    @classmethod
    def no_cluster(cls, trace: str) -> SpecError:
        """Build the error for a trace that tells nothing of its cluster."""
        return cls(
            "--cluster",
            f"the trace {quote(trace)} tells neither its cluster nor when jobs held GPUs; "
            "give one: --cluster 64x8:A100 (nodes x GPUs : type), pool:512 or FILE.toml.",
        )


class PolicyError(WindtunnelError):
    """A policy decided something impossible (unknown job, started twice, does not fit).

    Attributes:
        policy: the policy's name.
        time: simulated instant in seconds, or None before the run.
        job: the job's id, or None.
    """

    def __init__(
        self, policy: str, message: str, *, time: float | None = None, job: str | None = None
    ) -> None:
        self.policy = policy
        self.time = time
        self.job = job
        when = "" if time is None else f" at t={time:.15g} s"
        who = "" if job is None else f", job {quote(job)}"
        super().__init__(f"policy {quote(policy)}{when}{who}: {message}")


class InfeasibleError(WindtunnelError):
    """An optimisation model has no solution.

    Attributes:
        model: the model's name.
        status: what became of it, in the model's own words.
    """

    def __init__(self, model: str, status: str) -> None:
        self.model = model
        self.status = status
        super().__init__(f"{model}: no feasible solution: {status}")


class ThroughputError(WindtunnelError):
    """Nothing says how fast a job runs under a plan on a placement, or it cannot run so.

    Attributes:
        model: the training model's name.
        plan: the plan's published word.
        placement: GPUs on each node, as digits.
    """

    def __init__(self, model: str, message: str, *, plan: str, placement: str) -> None:
        self.model = model
        self.plan = plan
        self.placement = placement
        super().__init__(
            f"model {quote(model)}, plan {quote(plan)}, placement {quote(placement)}: {message}."
        )
