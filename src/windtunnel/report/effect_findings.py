"""What a study of prediction found, in sentences that the numbers make, gain and cost alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.findings import size_label
from windtunnel.report.format import count, duration, percent, plural
from windtunnel.report.names import clean
from windtunnel.study.effect_settings import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.study.prediction_effect import PredictionEffect

Row = dict[str, Any]
#: A share of a gain beyond this is one of next to nothing.
_TELLING = 2.0
#: A mean wait below this is hardly one, s.
_HARDLY = 10


def headline(found: PredictionEffect) -> str:
    """Return the finding in one sentence: what the chosen setting, or else prediction, brings."""
    choice, model = found.choice, clean(found.model)
    load = middle(found)
    first, plain = _plain(found, load)
    if choice.policy is None:
        if not plain["wait_saved"] or plain["wait_saved"] <= 0:
            return f"Predicting run times gains nothing here: {_saving(first, plain, model, load)}."
        return (
            f"Shortest first by {model} {_cut(first, plain)} at load {load:g}, but no setting that "
            f"was tried gains at every load without making {big_words(found)} wait longer."
        )
    chosen = next(row for row in found.at(load) if row["policy"] == choice.policy)
    cure = ""
    if chosen["kind"] != "shortest":
        kept = [value for value in choice.kept.values() if value is not None]
        # Shares of a gain that is next to nothing say nothing.
        tells = kept and max(map(abs, kept)) <= _TELLING
        share = f" ({_span(kept)} of the gain of shortest first)" if tells else ""
        cure = f" with {clean(choice.policy)}{share}"
    return (
        f"Predicting run times with {model} {_cut(first, chosen)} at load {load:g}{cure}, and the "
        f"longest waits of {big_words(found)} grow by {percent(TOLERANCE - 1)} at most."
    )


def middle(found: PredictionEffect) -> float:
    """Return the load that single examples are given at: the middle one, the lower of two."""
    return sorted(found.loads)[(len(found.loads) - 1) // 2]


def big_words(found: PredictionEffect) -> str:
    """Return the big jobs in words."""
    least = found.big.least
    return f"jobs of {least:g} GPU{'s' * (least != 1)} or more"


def sentences(found: PredictionEffect) -> list[tuple[str, str]]:
    """Return (what it is about, sentences) pairs: gain, accuracy, sizes, starvation, the cure."""
    return [
        ("What prediction buys", " ".join(_gains(found))),
        ("How far off it is", _accuracy(found)),
        ("Where it helps", _sizes(found)),
        ("Where big jobs starve", " ".join(_starving(found))),
        ("What to run", " ".join(_chosen(found))),
    ]


def _gains(found: PredictionEffect) -> list[str]:
    """Return a sentence a load: what each predictor saves, beside the bound."""
    lines = []
    for load in found.loads:
        rows = [row for row in found.at(load) if row["kind"] == "shortest"]
        first, _ = _plain(found, load)
        if first["avg_wait"] == 0:
            lines.append(f"At load {load:g} nobody waits under fifo.")
            continue
        parts = [f"{clean(row['model'])} {_signed(row['wait_saved'])}" for row in rows]
        lines.append(
            f"At load {load:g}, where the mean wait under fifo is {duration(first['avg_wait'])}, "
            f"shortest first saves of it: {', '.join(parts)}."
        )
    bounds = [row["model"] for row in found.predictions.to_pylist() if row["peeks"]]
    if bounds and found.model not in bounds:
        shares = [s for s in (_of_bound(found, load, bounds[0]) for load in found.loads) if s]
        if shares:
            lines.append(
                f"{clean(found.model)}, the best predictor, earns {_span(shares)} of what "
                f"{clean(bounds[0])} would, which knows the truth."
            )
    return lines + _falls(found)


def _falls(found: PredictionEffect) -> list[str]:
    """Return a warning where a higher load shortens the mean wait under fifo."""
    loads = sorted(found.loads)
    waits = [_plain(found, load)[0]["avg_wait"] for load in loads]
    falls = [i for i in range(1, len(loads)) if waits[i] < waits[i - 1]]
    if not falls:
        return []
    low, high = loads[falls[0] - 1], loads[falls[0]]
    rows = [row for row in found.sizes.to_pylist() if row["policy"] == "fifo"]
    at_low, at_high = ([row for row in rows if row["load"] == load][-1] for load in (low, high))
    giants = (
        f"{size_label(at_low['size'])}, n = {count(at_low['num_jobs'])}: mean wait "
        f"{duration(at_low['avg_wait'])} at load {low:g}, {duration(at_high['avg_wait'])} at "
        f"{high:g}"
    )
    warning = (
        f"Under fifo the mean wait at load {high:g} is shorter than at {low:g}: it hangs on when "
        f"the few biggest jobs get their GPUs, and what all others do meanwhile ({giants}). A "
        "difference between two loads of one log says little; compare within a load, over several "
        "seeds."
    )
    return [warning]


def _of_bound(found: PredictionEffect, load: float, bound: str) -> float | None:
    rows = {row["model"]: row for row in found.at(load) if row["kind"] == "shortest"}
    most, ours = rows[bound]["wait_saved"], rows[found.model]["wait_saved"]
    return ours / most if most and most > 0 else None


def _accuracy(found: PredictionEffect) -> str:
    rows = [row for row in found.predictions.to_pylist() if not row["peeks"]]
    known = [row for row in rows if row["within_25"] is not None]
    if not known:
        return "No predictor was asked that does not know the truth."
    parts = [f"{clean(r['model'])} {percent(r['within_25'])}" for r in known]
    text = f"Share of predictions within 25 % of the truth: {', '.join(parts)}."
    closest = max(known, key=lambda row: row["within_25"])["model"]
    if len(known) > 1 and closest == found.model:
        text += f" The closest, {clean(closest)}, is also the one that saves most."
    elif len(known) > 1:
        text += f" The closest is {clean(closest)}; {clean(found.model)} saves most."
    return text


def _sizes(found: PredictionEffect) -> str:
    """Return which sizes the saved waiting is of, and which wait longer, at the middle load."""
    load = middle(found)
    label = f"sjf:by={found.model}"
    rows = [row for row in found.sizes.to_pylist() if row["load"] == load]
    base = {row["size"]: row for row in rows if row["policy"] == "fifo"}
    ours = {row["size"]: row for row in rows if row["policy"] == label}
    saved = {
        size: (base[size]["avg_wait"] - ours[size]["avg_wait"]) * base[size]["num_jobs"]
        for size in base
    }
    total = sum(saved.values())
    if total <= 0:
        return f"At load {load:g} shortest first by {clean(found.model)} saves no waiting in total."
    top = sorted((s for s in saved if saved[s] > 0), key=lambda s: -saved[s])[:2]
    parts = [
        f"{size_label(size)} ({percent(saved[size] / total)} of the sum, mean wait "
        f"{duration(base[size]['avg_wait'])} to {duration(ours[size]['avg_wait'])}, "
        f"n = {count(base[size]['num_jobs'])})"
        for size in top
    ]
    text = f"At load {load:g} the waiting that {clean(found.model)} saves is that of "
    text += f"{' and '.join(parts)}."
    idle = sum(r["num_jobs"] for r in base.values() if r["avg_wait"] < _HARDLY)
    if idle:
        share = idle / sum(r["num_jobs"] for r in base.values())
        text += f" {percent(share)} of the jobs are of sizes whose mean wait under fifo is below "
        text += f"{_HARDLY} s: no prediction can help them."
    longer = [s for s in base if ours[s]["avg_wait"] > 1.1 * base[s]["avg_wait"] + 1]
    if longer:
        names = ", ".join(
            f"{size_label(s)} ({duration(base[s]['avg_wait'])} to {duration(ours[s]['avg_wait'])}, "
            f"n = {count(base[s]['num_jobs'])})"
            for s in longer
        )
        text += f" Longer on average wait {names}."
    else:
        text += " No size waits 10 % longer on average."
    return text


def _starving(found: PredictionEffect) -> list[str]:
    """Return how the big jobs fare under fifo, and under shortest first at each load."""
    load = middle(found)
    first, _ = _plain(found, load)
    who = big_words(found)
    jobs = plural(first["big_num_jobs"], "job")
    mean, longest = duration(first["big_avg_wait"]), duration(first["big_max_wait"])
    overtaken = count(first["big_avg_overtaken"])
    under_fifo = (
        f"The big jobs are {who} ({jobs}). Under fifo, which goes on past a job that does not fit, "
        f"they wait {mean} on average at load {load:g} (all jobs: {duration(first['avg_wait'])}), "
        f"the longest {longest}; each is overtaken by {overtaken} later jobs on average."
    )
    lines = [under_fifo]
    for each in found.loads:
        bad = [row for row in found.at(each) if row["kind"] == "shortest" and row["starves"]]
        good = [
            row["model"]
            for row in found.at(each)
            if row["kind"] == "shortest" and not row["starves"]
        ]
        if not bad:
            lines.append(f"At load {each:g} shortest first starves them under no predictor.")
            continue
        parts = [
            f"{clean(r['model'])} (P99 {r['big_p99_ratio']:.2f}, longest "
            f"{r['big_max_ratio']:.2f} times fifo\u2019s)"
            for r in bad
        ]
        rest = f"; not by {', '.join(map(clean, good))}" if good else ""
        lines.append(f"At load {each:g} shortest first starves them by {', '.join(parts)}{rest}.")
    return lines


def _chosen(found: PredictionEffect) -> list[str]:
    choice, who = found.choice, big_words(found)
    rule = (
        f"The rule: the P99 and the longest of the waits of {who} are at most {TOLERANCE:g} times "
        f"those under fifo; of the settings of {clean(found.model)} that keep to it, the lowest "
        "mean wait."
    )
    if choice.policy is None:
        lines = ["No setting keeps to it at every load and gains on fifo."]
    elif choice.policy == f"sjf:by={found.model}":
        lines = [
            f"It picks {clean(choice.policy)} as it is, which starves them at none of the loads."
        ]
    else:
        kept = ", ".join(
            f"{percent(value)} at load {load:g}" if value is not None else f"none at {load:g}"
            for load, value in choice.kept.items()
        )
        lines = [f"It picks {clean(choice.policy)}: of the gain of shortest first it keeps {kept}."]
    alone = [
        f"{clean(label)} at load {load:g}" if label else f"nothing at load {load:g}"
        for load, label in choice.by_load.items()
    ]
    if len(found.loads) > 1 and set(choice.by_load.values()) != {choice.policy}:
        lines.append(f"For one load alone it would pick {', '.join(alone)}.")
    return [rule, *lines, *_reserving(found)]


def _reserving(found: PredictionEffect) -> list[str]:
    """Return what the reservation that spares the big jobs most does, where there is any."""
    load = middle(found)
    rows = [row for row in found.at(load) if row["kind"] == "reservation"]
    first, _ = _plain(found, load)
    if not rows or first["big_max_wait"] == 0:
        return []
    best = min(rows, key=lambda row: row["big_max_ratio"])
    longest = f"{duration(first['big_max_wait'])} to {duration(best['big_max_wait'])}"
    mean = f"{duration(first['big_avg_wait'])} to {duration(best['big_avg_wait'])}"
    name = clean(best["policy"])
    text = (
        f"The reservation that spares the big jobs most ({name}, load {load:g}) takes the longest "
        f"of their waits from {longest} and the mean from {mean}; it {_cut(first, best)}."
    )
    return [text]


def _plain(found: PredictionEffect, load: float) -> tuple[Row, Row]:
    """Return the runs of fifo and of shortest first by the best predictor."""
    rows = found.at(load)
    first = next(row for row in rows if row["kind"] == "fifo")
    own = (r for r in rows if r["kind"] == "shortest" and r["model"] == found.model)
    return first, next(own)


def _cut(first: Row, row: Row) -> str:
    saved = row["wait_saved"] or 0.0
    verb = "cuts" if saved > 0 else "lengthens"
    return (
        f"{verb} the mean wait by {percent(abs(saved))} ({duration(row['avg_wait'])} instead of "
        f"{duration(first['avg_wait'])})"
    )


def _saving(first: Row, row: Row, model: str, load: float) -> str:
    if first["avg_wait"] == 0:
        return f"at load {load:g} nobody waits under fifo"
    return f"shortest first by {model} {_cut(first, row)} at load {load:g}"


def _signed(saved: float | None) -> str:
    if saved is None:
        return "nothing"
    return percent(saved) if saved >= 0 else f"{percent(saved)} (it waits longer)"


def _span(values: Sequence[float]) -> str:
    """Return shares as one, or from the lowest to the highest.

    >>> _span([0.5, 0.9]), _span([0.5])
    ('50 % to 90 %', '50 %')
    """
    low, high = percent(min(values)), percent(max(values))
    return low if low == high else f"{low} to {high}"
