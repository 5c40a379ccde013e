"""The names that users type, as types: editors complete them, and checkers find slips in rules.

Where a name may also be a plug-in's, or have parameters behind it, any text will do besides: what
is missing here is found all the same. A test holds the names against the catalogues.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

#: The built-in policies and their other names, without parameters.
PolicyName: TypeAlias = Literal[
    "antman",
    "conservative",
    "decoupled-evaluation",
    "easy",
    "easy-perfect",
    "easy-sjbf",
    "edf",
    "equal-share",
    "fair-share",
    "fcfs",
    "fifo",
    "fixed-plan",
    "kueue",
    "las",
    "least-area-first",
    "morphling",
    "morphling:neither",
    "morphling:plans",
    "morphling:priced",
    "morphling:resources",
    "multifactor",
    "priority",
    "priority-preemptive",
    "qssf",
    "quota",
    "reserving-packing",
    "shortest-first",
    "sjf",
    "sjf-estimate",
    "sjf-preemptive",
    "sjg",
    "sjgg",
    "sju",
    "slurm",
    "srsf",
    "srtf",
    "synergy",
    "tiresias",
]
#: What happens at a job that does not fit.
QueueingRule: TypeAlias = Literal["conservative", "easy", "easy_sjbf", "skip", "strict"]
#: Placements without options.
PlacementName: TypeAlias = Literal[
    "best_fit",
    "dot_prod",
    "fgd",
    "first_fit",
    "gpu_clustering",
    "gpu_packing",
    "least_idle",
    "load_rate",
    "lowest_utilization",
    "most_idle",
    "openb_best_fit",
    "pool",
    "random",
    "spread",
    "tree",
    "worst_fit",
]
#: What may fly a run.
EngineName: TypeAlias = Literal["auto", "compiled", "reference"]
