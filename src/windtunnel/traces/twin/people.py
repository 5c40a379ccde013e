"""Users: who they are is not published, how unequal they are is.

Users are ranked by their GPU time and cut into classes at 5, 10, 20, 40 and 70 % of the users, each
of at least ``min_count`` users. The model holds of a class how many users it has, how unequal their
numbers of jobs are, and, as of any other name, its jobs by stratum and its GPU time.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.synthetic.knots import largest_remainder
from windtunnel.traces.twin.bins import rounded
from windtunnel.traces.twin.model import KNOWN, NUMBERS, OPTIONAL, Category, UserClass
from windtunnel.traces.twin.split import Split, fit_split
from windtunnel.traces.twin.strata import OTHER, Strata, dealt_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from windtunnel.traces.twin.split import Rules
    from windtunnel.traces.twin.strata import Columns

#: Share of jobs in users' own virtual clusters from which a user is held to have one.
_HOME_SHARE = 0.9
#: Jobs that carry this share of GPU time are dealt by it, the others by number alone.
_HEAVY = 0.999
_CUTS = (0.05, 0.1, 0.2, 0.4, 0.7)


def fit_users(table: Columns, min_count: int) -> tuple[list[UserClass], NDArray[np.int64]]:
    """Return the classes of users, those of most GPU time first, and each job's class.

    Args:
        min_count: fewest users of a class; where there are not twice as many, all are one class.

    Returns:
        The classes; and numbers of shape (jobs,), -1 where the user is unknown.
    """
    user = table.codes["user"]
    count = len(table.values["user"])
    if count == 0:
        return [], np.full(len(table), -1, dtype=np.int64)
    known = user >= 0
    jobs = np.bincount(user[known], minlength=count).astype(np.float64)
    gpu_time = np.bincount(user[known], table.gpu_time[known], minlength=count).astype(np.float64)
    order = np.lexsort((-jobs, -gpu_time))
    cuts = _cuts(count, min_count)
    of_user = np.empty(count + 1, dtype=np.int64)
    of_user[order] = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
    of_user[-1] = -1
    classes = []
    for number in range(len(cuts) - 1):
        members = order[cuts[number] : cuts[number + 1]]
        spreads = [
            _spread(values[members], min_count) for values in (jobs.astype(np.float64), gpu_time)
        ]
        classes.append(UserClass(len(members), *spreads))
    return classes, of_user[user]


def _spread(values: NDArray[np.float64], min_count: int) -> float:
    """Return the standard deviation of logarithms; 0 where it would tell of few users."""
    logs = np.log(values[values > 0])
    return rounded(float(logs.std())) if len(logs) >= min_count else 0.0


def keep_vc(table: Columns) -> bool:
    """Return whether nine jobs in ten are in the virtual cluster that their user uses most."""
    user, vc = table.codes["user"], table.codes["vc"]
    known = (user >= 0) & (vc >= 0)
    pairs, jobs = np.unique(np.stack([user[known], vc[known]]), axis=1, return_counts=True)
    if not len(jobs):
        return False
    most = np.zeros(int(pairs[0].max()) + 1)
    np.maximum.at(most, pairs[0], jobs)
    return bool(most.sum() >= _HOME_SHARE * known.sum())


def _cuts(users: int, min_count: int) -> list[int]:
    cuts = [0]
    for share in _CUTS:
        cut = max(round(share * users), 1)
        if cut - cuts[-1] >= min_count and users - cut >= min_count:
            cuts.append(cut)
    if len(cuts) == 1 and users >= 2 * min_count:
        cuts.append(min_count)
    return [*cuts, users]


def draw_users(
    classes: list[UserClass],
    user_class: NDArray[np.int64],
    vc: NDArray[np.int64],
    gpu_time: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], int]:
    """Draw each job's user; a user belongs to one class and, where numbers allow, to one vc.

    Args:
        user_class: class of each job, -1 = user unknown, shape (jobs,).
        vc: virtual cluster of each job, as a code >= 0, shape (jobs,).
        gpu_time: GPU seconds of each job, shape (jobs,).

    Returns:
        Number of each job's user, -1 = unknown, shape (jobs,); and how many users there are.
    """
    user = np.full(len(user_class), -1, dtype=np.int64)
    first = 0
    for number, people in enumerate(classes):
        inside = np.flatnonzero(user_class == number)
        by_jobs = np.exp(people.job_spread * rng.permutation(_normal_scores(people.users)))
        # Ranked by GPU time, only the first class has a tail of its own above it.
        scores = _even_scores(people.users) if number else _normal_scores(people.users)
        by_time = np.exp(people.time_spread * rng.permutation(scores))
        for mine, home in _homes(vc[inside], gpu_time[inside], people.users, rng):
            jobs = inside[mine]
            dealt = _deal(by_jobs[home], by_time[home], gpu_time[jobs], rng)
            user[jobs] = first + home[dealt]
        first += people.users
    return user, first


def _homes(
    vc: NDArray[np.int64], gpu_time: NDArray[np.float64], users: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the jobs of each virtual cluster and the users that share them, by GPU time."""
    names, code, jobs = np.unique(vc, return_inverse=True, return_counts=True)
    order = rng.permutation(users)
    weight = np.bincount(code, gpu_time + 1.0, minlength=len(names))
    share = np.minimum(largest_remainder(weight, users), jobs)  # nobody without a job
    unshared = jobs - share
    share += np.minimum(
        largest_remainder(unshared, min(users - int(share.sum()), int(unshared.sum()))), unshared
    )
    ends = np.cumsum(share)
    starts = np.concatenate([[0], ends[:-1]])
    for place in range(len(names)):
        home = order[starts[place] : ends[place]]
        # Fewer users than virtual clusters: these jobs are anybody's.
        yield np.flatnonzero(code == place), home if len(home) else order


def _deal(
    by_jobs: NDArray[np.float64],
    by_time: NDArray[np.float64],
    gpu_time: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Deal jobs to users: the heavy ones to who lacks most GPU time, the others by number.

    Args:
        by_jobs: relative number of jobs of each user, shape (users,).
        by_time: relative GPU time of each user, shape (users,).
        gpu_time: GPU seconds of each job, shape (jobs,).

    Returns:
        User of each job, shape (jobs,).
    """
    quota = _at_least_one(by_jobs, len(gpu_time)).tolist()
    order = np.argsort(-gpu_time, kind="stable")
    total = np.cumsum(gpu_time[order])
    heavy = int(np.searchsorted(total, _HEAVY * total[-1])) + 1 if total[-1] > 0 else 0
    missing = by_time / by_time.sum() * total[-1]
    heap = [(-float(missing[u]), u) for u in range(len(quota)) if quota[u]]
    heapq.heapify(heap)
    user = np.empty(len(gpu_time), dtype=np.int64)
    for job in order[:heavy].tolist():
        least, who = heapq.heappop(heap)
        user[job] = who
        quota[who] -= 1
        if quota[who]:
            heapq.heappush(heap, (least + float(gpu_time[job]), who))
    user[order[heavy:]] = rng.permutation(np.repeat(np.arange(len(quota)), quota))
    return user


def _at_least_one(weight: NDArray[np.float64], jobs: int) -> NDArray[np.int64]:
    """Return jobs by weight, one at least for everybody where there are enough."""
    if jobs < len(weight):
        return largest_remainder(weight, jobs)
    return 1 + largest_remainder(weight, jobs - len(weight))


def _normal_scores(count: int) -> NDArray[np.float64]:
    """Return about what the ordered ones of ``count`` normal values are on average (Blom)."""
    from statistics import NormalDist

    normal = NormalDist()
    return np.array([normal.inv_cdf((n + 0.625) / (count + 0.25)) for n in range(count)])


def _even_scores(count: int) -> NDArray[np.float64]:
    """Return ``count`` evenly spread values of mean 0 and standard deviation 1."""
    spread = np.arange(count) - (count - 1) / 2
    return np.asarray(spread / max(float(spread.std()), 1e-300))


def other_than(names: list[str]) -> str:
    """Return what small ones are put together under: a name that none of ``names`` is.

    >>> other_than(["a", "other"])
    'other-'
    """
    other = OTHER
    while other in names:
        other += "-"
    return other


def fit_known(table: Columns, strata: Strata, rules: Rules) -> dict[str, Split]:
    """Return how many jobs lack and have each column that may be unknown, by stratum."""
    known = {name: np.isfinite(getattr(table, name)) for name in ("estimate", *NUMBERS)}
    known["template"] = table.codes["template"] >= 0
    shape = (len(strata.gpus), 2)
    splits = {}
    for name in KNOWN:
        if name in OPTIONAL and int(known[name].sum()) < rules.min_count:
            continue
        # Of an estimate the ratio to the run time is published: that must be known as well.
        usable = known[name] & (np.isfinite(table.duration) | (name != "estimate"))
        counted = (
            known[name] if int(usable.sum()) >= rules.min_count else np.zeros_like(known[name])
        )
        splits[name] = fit_split(strata.index, counted.astype(np.int64), shape, rules.min_count)[0]
    return splits


def fit_names(
    table: Columns,
    strata: Strata,
    column: str,
    rules: Rules,
    rng: np.random.Generator,
    *,
    keep: bool = False,
) -> Category:
    """Return a column of names, renamed unless they are kept; small ones are one.

    Args:
        column: ``vc`` or ``gpu_type``.
        rules: how small a group may be.
    """
    codes, values = table.codes[column], table.values[column]
    count = np.bincount(codes + 1, minlength=len(values) + 1)[1:]
    big = np.flatnonzero(count >= rules.min_count)
    renumbered = np.full(len(values) + 1, len(big) + 1, dtype=np.int64)  # small ones
    renumbered[big] = np.arange(len(big)) + 1
    renumbered[-1] = 0
    if keep:
        names = [values[code] for code in big.tolist()]
    elif column == "vc":
        digits = max(len(str(len(big))), 2)
        names = [f"vc-{n + 1:0{digits}d}" for n in rng.permutation(len(big)).tolist()]
    else:
        names = dealt_names("gpu", len(big), rng)
    return _category(table, strata, renumbered[codes], ["", *names, other_than(names)], rules)


def fit_classes(
    table: Columns, strata: Strata, user_class: NDArray[np.int64], classes: int, rules: Rules
) -> Category:
    """Return the classes of users as a column of names; an empty one is: no user known."""
    names = ["", *(f"class-{number + 1}" for number in range(classes))]
    return _category(table, strata, user_class + 1, names, rules, keep_from=1)


def _category(
    table: Columns,
    strata: Strata,
    code: NDArray[np.int64],
    names: list[str],
    rules: Rules,
    *,
    keep_from: int | None = None,
) -> Category:
    """Return counts and GPU time by name, without names that no job is counted under.

    GPU time is that of all strata together in the names' proportions: what is left of it is
    nothing, so that it tells nothing of a name with few jobs.
    """
    split, _ = fit_split(strata.index, code, (len(strata.gpus), len(names)), rules.min_count)
    used = split.totals() > 0
    if keep_from is not None:
        used[keep_from:] = True
    weight = table.gpu_time
    sums = np.array([rules.total(weight[code == place]) for place in range(len(names))]) * used
    whole = strata_gpu_time(table, strata, rules)
    scaled = sums * (whole / sums.sum()) if sums.sum() > 0 else sums
    listed = np.array(split.listed, dtype=np.int64)[:, used]
    return Category(
        [name for name, is_used in zip(names, used, strict=True) if is_used],
        [rounded(value) for value in scaled[used].tolist()],
        Split(listed.tolist(), np.array(split.rest)[used].tolist()),
    )


def strata_gpu_time(table: Columns, strata: Strata, rules: Rules) -> float:
    """Return the GPU time of all strata that tell theirs."""
    weight = table.gpu_time
    return float(
        sum(rules.total(weight[strata.index == number]) for number in range(len(strata.gpus)))
    )
