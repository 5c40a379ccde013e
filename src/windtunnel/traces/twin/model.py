"""`Statistics`: what is kept of a trace, and nothing else.

What a twin file holds is k-anonymous in its published numbers, k being ``min_count``:

* every number of jobs is 0 or at least k, and so is what is left of a stratum when the parts of it
  that are published by one property are taken away;
* every mean, sum and quantile group is over at least k jobs, extremes included: the largest value
  published is the mean of the k largest or more. A value is published as it is only where k jobs
  share it. Of run times or waits in one group, of five jobs or more, the spread is published too,
  in tenths;
* values that are published for all strata together are those of strata without their own, so that
  no difference of published sums is that of fewer than k jobs;
* users are put in classes of at least k users (all in one class where there are fewer than 2 k).
  Sizes of templates and of batches are means over at least k of them, or over all;
* no text of the source is in it: no id, no name of a user, virtual cluster, template, workload or
  GPU type (unless ``keep_workloads`` or ``keep_gpu_types`` was asked for), no file name, no date.
  States are the schema's own words. Times are counts by day since the first and hour of the week.

Published without a crowd are only the weekday of the first submission, the number of days to the
last, and facts of whole columns: whether all values are whole numbers, whether users keep to one
cluster.

It is not differential privacy. Who knows all jobs of a group but one can work out the last; a cell
or a virtual cluster of k jobs may be one person's; equations between different tables of the file
may narrow things down; and the distributions are the real ones. Decide with that in mind whether to
share the file.
"""

from __future__ import annotations

import msgspec

from windtunnel.schema import STATUSES

# msgspec reads the types of fields at run time: these are no imports for type checking alone.
from windtunnel.traces.twin.arrivals import Arrivals, Runs  # noqa: TC001 - see above
from windtunnel.traces.twin.bins import Bins  # noqa: TC001 - see above
from windtunnel.traces.twin.groups import Groups  # noqa: TC001 - see above
from windtunnel.traces.twin.sizes import Sizes  # noqa: TC001 - see above
from windtunnel.traces.twin.split import Split  # noqa: TC001 - see above

#: Value of `Statistics.format` in every file.
FORMAT = "windtunnel-twin-1"
#: Times that an ending may tell.
TIMES = ("submit", "start", "end", "duration")
#: Columns published by groups of values, and by category.
NUMBERS = ("num_cpus", "mem_gib", "priority", "restore_time")
CATEGORIES = ("gpu_type", "vc", "user_class")
#: Columns that are a ratio times another, and then rounded where the source's are whole.
SCALED = ("estimate", "num_cpus", "mem_gib")
#: Columns of which it is published how often they are known.
KNOWN = ("estimate", *NUMBERS, "template")
#: Those of them of which a twin says nothing where its source does not.
OPTIONAL = frozenset({"restore_time"})
#: Smallest ``min_count`` that protects anything.
LEAST_COUNT = 2


class Ending(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A way in which jobs' records end.

    Attributes:
        name: key of its durations in a stratum.
        times: which of submit, start, end and duration are known.
        status: the status; None = unknown.
    """

    name: str
    times: list[str]
    status: str | None = None


class Stratum(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Jobs of one workload and one class of GPU counts.

    Attributes:
        gpus: the class in words.
        jobs: how many.
        sizes: their GPU counts.
        gpu_time: their GPU seconds together.
        workload: the workload's name here; None = unknown.
        duration: run times (s) by name of the ending, ``rest`` for the stratum's rest.
        wait: start - submit, s.
        days: submissions by day, over the days of all jobs.
        estimate: ratio of estimate to run time, by equal parts of the jobs in order of run time.
        num_cpus: cores a GPU; of a job without GPUs, cores.
        mem_gib: host memory a GPU, GiB; of a job without GPUs, all of it.
        priority: priorities.
        restore_time: s that a stopped job needs to go on, where the source says any.
    """

    gpus: str
    jobs: int
    sizes: Sizes
    gpu_time: float = 0.0
    workload: str | None = None
    duration: dict[str, Bins] = msgspec.field(default_factory=dict)
    wait: Bins | None = None
    days: Runs | None = None
    estimate: list[Bins] = msgspec.field(default_factory=list)
    num_cpus: Bins | None = None
    mem_gib: Bins | None = None
    priority: Bins | None = None
    restore_time: Bins | None = None


class Pooled(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The same distributions over all strata, for those that have too few values of their own."""

    duration: Bins | None = None
    wait: Bins | None = None
    estimate: list[Bins] = msgspec.field(default_factory=list)
    num_cpus: Bins | None = None
    mem_gib: Bins | None = None
    priority: Bins | None = None
    restore_time: Bins | None = None


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of names.

    Attributes:
        names: the names here; an empty one stands for unknown.
        gpu_time: GPU seconds of each name's jobs, shape (names,).
        jobs: jobs by stratum and name.
    """

    names: list[str]
    gpu_time: list[float]
    jobs: Split


class UserClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Users of about the same GPU time.

    Attributes:
        users: how many.
        job_spread: standard deviation of ln(jobs of a user).
        time_spread: standard deviation of ln(GPU time of a user).
    """

    users: int
    job_spread: float
    time_spread: float


class Statistics(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The statistics of a trace, from which jobs like its own can be made.

    Attributes:
        format: `FORMAT`.
        min_count: no published number rests on fewer jobs.
        jobs: jobs of the source.
        endings: states and which times they leave known.
        strata: the jobs by workload and GPU count.
        ended: jobs by stratum and ending.
        known: jobs whose column is unknown and known (two categories), by stratum; of the columns
            that few traces have (`OPTIONAL`) only where it is known of any.
        names: ``gpu_type``, ``vc`` and ``user_class`` (rank classes of users by GPU time).
        users: the classes of users, in the order of the names of ``user_class``.
        users_keep_vc: users submit (nine jobs in ten, or more) to one virtual cluster each.
        arrivals: submissions in time.
        pooled: distributions over all strata.
        templates: runs of templates.
        template_spread: standard deviation of ln(run time) between runs of a template.
        whole: columns of which all values are whole numbers.
        kept: columns whose values are the source's own names.
    """

    format: str
    min_count: int
    jobs: int
    endings: list[Ending]
    strata: list[Stratum]
    ended: Split
    known: dict[str, Split]
    names: dict[str, Category]
    arrivals: Arrivals
    pooled: Pooled
    users: list[UserClass] = msgspec.field(default_factory=list)
    users_keep_vc: bool = False
    templates: Groups | None = None
    template_spread: float = 0.0
    whole: list[str] = msgspec.field(default_factory=list)
    kept: list[str] = msgspec.field(default_factory=list)


#: Words that `Ending.status` may be.
STATUS_WORDS = frozenset(STATUSES)
