"""What errors say: facts in, one sentence out, safe to print."""

from __future__ import annotations

import pickle

import pytest

import windtunnel as wt
from windtunnel.errors import MAX_QUOTED, TraceError, Violation, nearest, quote, unused_names


def test_quoting_escapes_and_cuts() -> None:
    assert quote("a\x1b[31m\n") == r"'a\x1b[31m\n'"
    assert quote("Zürich \u202e") == r"'Z\xfcrich \u202e'"
    assert quote(None) == "None"
    assert quote(-0.5) == "-0.5"
    exact = "x" * (MAX_QUOTED - 2)
    assert quote(exact) == f"'{exact}'"
    cut = quote("x" * 500)
    assert len(cut) <= MAX_QUOTED
    assert cut.startswith("'xxx")
    assert cut.endswith("...'")


def test_nearest_suggests_what_is_there() -> None:
    assert nearest("strct", ["skip", "strict"]) == " Did you mean 'strict'?"
    assert nearest("zzz", ["skip", "strict"]) == ""
    assert nearest("x", []) == ""
    assert nearest("SRTF", ["srtf"]) == " Did you mean 'srtf'?"
    # As it is spelt where it stands: that is what one has to type.
    assert nearest("num_gpus", ["Num_GPUs", "user"]) == " Did you mean 'Num_GPUs'?"


def test_unused_names_are_listed_beside_what_there_is() -> None:
    def sentences(named: list[str], occurring: list[str | None]) -> list[str]:
        return unused_names("Jobs name", "partition", named, occurring, where="the site")

    assert sentences(["gpu"], ["gpu", None]) == []
    assert sentences(["silver", "gpu"], ["gold", "gpu"]) == [
        "Jobs name partition 'silver'; the site has 'gold', 'gpu'."
    ]
    assert sentences(["GPU"], ["gpu"]) == [
        "Jobs name partition 'GPU' (did you mean 'gpu'?); the site has 'gpu'."
    ]
    assert sentences(["x"], [None]) == ["Jobs name partition 'x'; the site has none."]
    many = [f"a{number}" for number in range(1000, 2000)]
    (sentence,) = sentences(many, ["z", *many[:7]])
    assert "'a1011' (did you mean" in sentence
    assert " and 988 more; the site has 'a1000', " in sentence
    assert sentence.endswith("'a1004' and 3 more.")
    # Among millions of ids nobody looks for the nearest: that would take minutes.
    (sentence,) = sentences(["x7"], [f"x{number}a" for number in range(20_001)])
    assert "did you mean" not in sentence


def test_the_tree() -> None:
    for name in ("InfeasibleError", "PolicyError", "SchemaError", "SpecError", "TraceError"):
        assert issubclass(getattr(wt, name), wt.WindtunnelError)
        assert getattr(wt, name).__bases__ == (wt.WindtunnelError,)


@pytest.mark.parametrize(
    "error",
    [
        TraceError("a.csv", "a number", row=7, column="duration", value="x", hint="Look there."),
        wt.SpecError("--nodes", "found 0; expected at least 1."),
        wt.SchemaError("a.csv", [Violation("duration", "no null", 2, 7, None)]),
        wt.PolicyError("mine", "started it twice", time=1.5, job="a"),
        wt.InfeasibleError("makespan", "no GPU"),
    ],
)
def test_they_come_whole_from_another_process(error: wt.WindtunnelError) -> None:
    error.add_note("where it was raised")
    found = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


def test_trace_errors() -> None:
    error = TraceError(
        "a.csv", "a number >= 0", row=7, column="duration", value="-1\x07", hint="See the docs."
    )
    assert str(error) == (
        r"a.csv, line 7, column 'duration': found '-1\x07'; expected a number >= 0. See the docs."
    )
    facts = (error.file, error.row, error.column, error.value, error.expected)
    assert facts == ("a.csv", 7, "duration", "-1\x07", "a number >= 0")
    assert str(TraceError("a.csv", "at least one row")) == "a.csv: expected at least one row."
    missing = TraceError.missing_column("a.csv", "duration", ["durations", "user"])
    assert str(missing) == (
        "a.csv, column 'duration': expected a column 'duration'. The file has: 'durations', 'user'."
        " Did you mean 'durations'?"
    )
    assert str(TraceError.missing_column("a.csv", "duration", [])).endswith("The file has: none.")


@pytest.mark.parametrize(
    ("violation", "text"),
    [
        (Violation("a", "a value"), "column 'a': expected a value"),
        (
            Violation("a", "a value", 1, 3, "x"),
            "column 'a': expected a value (1 row, first in line ",
        ),
        (
            Violation("a", "a value", 1_234, 3, 0.5, unit="row"),
            "column 'a': expected a value (1234 rows, first in row 3: 0.5)",
        ),
        (Violation("a", "a value", 2), "column 'a': expected a value (2 rows)"),
    ],
)
def test_violations(violation: Violation, text: str) -> None:
    assert str(violation).replace(",", "").startswith(text.replace(",", ""))


def test_spec_policy_and_infeasible_errors() -> None:
    unknown = wt.SpecError.unknown("--policy", "ffio", ["sjf", "fifo"])
    assert str(unknown) == ("--policy: unknown name 'ffio'. Did you mean 'fifo'? Known: fifo, sjf.")
    assert unknown.path == "--policy"
    assert str(wt.PolicyError("mine", "fails")) == "policy 'mine': fails"
    error = wt.PolicyError("mine", "fails", time=0.5, job="j1")
    assert str(error) == "policy 'mine' at t=0.5 s, job 'j1': fails"
    assert (error.policy, error.time, error.job) == ("mine", 0.5, "j1")
    infeasible = wt.InfeasibleError("max-min", "unbounded")
    assert str(infeasible) == "max-min: no feasible solution: unbounded"
    assert (infeasible.model, infeasible.status) == ("max-min", "unbounded")


def test_times_of_long_runs_are_kept_apart() -> None:
    early, late = (wt.PolicyError("p", "m", time=time) for time in (1219300.25, 1219301.5))
    assert str(early) != str(late)
