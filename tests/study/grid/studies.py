"""Studies for the tests: small traces, runs of a few milliseconds."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any

from windtunnel.study.grid import Study

if TYPE_CHECKING:
    from pathlib import Path


def write_trace(path: Path, *, jobs: int = 60, seed: int = 0, weeks: int = 1) -> Path:
    """Write a jobs table of several users as CSV: bursts on which orders differ."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    lines = ["job_id,submit_time,duration,num_gpus,user,estimate"]
    for index in range(jobs):
        submit = draw.randrange(600) + (index % weeks) * 7 * 86_400
        duration = draw.choice([10, 20, 60, 300, 900])
        gpus = draw.choice([1, 1, 1, 2, 4, 8])
        lines.append(f"j{index},{submit},{duration},{gpus},u{index % 9},{duration * 2}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def study_of(folder: Path, **given: Any) -> Study:
    """Return a study of one written trace, unless ``given`` says otherwise."""
    trace = write_trace(folder / "jobs.csv")
    usual: dict[str, Any] = {
        "traces": [{"trace": str(trace), "name": "bursts"}],
        "clusters": ["2x8"],
        "policies": ["fifo", "sjf"],
    }
    return Study.from_mapping({**usual, **given})


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file of a store that holds results."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("timings.jsonl", ".lock")
    }
