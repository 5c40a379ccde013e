"""What stands behind a trace's name: options of what reads or makes it, and cuts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import windtunnel as wt
from windtunnel.companions import HOLDING_COLUMNS, companion
from windtunnel.study.grid.spec import Study
from windtunnel.traces.cuts import cut_trace
from windtunnel.traces.trace_name import MOVED, TraceName

ROWS = """job_id,submit_time,duration,num_gpus,vc,gpu_type
a,0,10,1,x,V100|P100
b,3600,10,1,y,v100
c,7200,10,1,x,A100
d,90000,10,1,"p,q",
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A jobs table of our own."""
    path = tmp_path / "log.csv"
    path.write_text(ROWS)
    return str(path)


def ids(name: str, **options: object) -> list[str]:
    """Return the jobs of a trace."""
    return wt.open_trace(name, **options).jobs["job_id"].to_pylist()


@pytest.mark.parametrize(
    ("text", "base", "settings"),
    [
        ("philly", "philly", ()),
        ("openb:gpuspec33", "openb:gpuspec33", ()),
        ("openb:gpuspec33:vc=a", "openb:gpuspec33", (("vc", "a"),)),
        (
            "x:from=2017-10-09T08:30:to=9",
            "x",
            (("from", "2017-10-09T08:30"), ("to", "9")),
        ),
        ("s:cpu-jobs=yes", "s", (("cpu_jobs", "yes"),)),
        ("-:jobs=first-1", "-", (("jobs", "first-1"),)),
        ("x:vc=", "x", (("vc", ""),)),
        ("x:=3", "x:=3", ()),
    ],
)
def test_a_name_has_a_base_and_settings(text: str, base: str, settings: object) -> None:
    name = TraceName.parse(text)
    assert (name.base, name.settings) == (base, settings)
    assert str(name) == text.replace("cpu-jobs", "cpu_jobs")


def test_a_file_that_is_called_so_has_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "log.csv:vc=x.csv"
    path.write_text(ROWS)
    assert len(ids(str(path))) == 4
    assert TraceName.parse(path).settings == ()


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ("from=1h", "bcd"),
        ("to=3600", "a"),
        ("from=1h:to=1d", "bc"),
        ("vc=x", "ac"),
        ("vc=x,y", "abc"),
        ("vc=p,q", "d"),
        ("gpu_type=V100", "ab"),
        ("jobs=first-2", "ab"),
        ("jobs=last-1", "d"),
        ("jobs=first-9", "abcd"),
        ("vc=x:jobs=first-1", "a"),
        ("jobs=first-2:vc=y", "b"),
        ("sample=1", "abcd"),
    ],
)
def test_cuts(file: str, settings: str, left: str) -> None:
    trace = wt.open_trace(f"{file}:{settings}")
    assert "".join(trace.jobs["job_id"].to_pylist()) == left
    about = trace.metadata
    assert about.rows_read == trace.jobs.num_rows + sum(about.dropped.values())
    assert trace.name == f"log:{settings}"
    assert about.settings == {"cut": settings}


def test_a_sample_is_drawn_with_its_seed(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    rows = "".join(f"{i},{i},1,1\n" for i in range(1000))
    path.write_text(f"job_id,submit_time,duration,num_gpus\n{rows}")
    first, other = ids(f"{path}:sample=0.1"), ids(f"{path}:sample=0.1:seed=1")
    assert len(first) == len(other) == 100
    assert first == ids(f"{path}:sample=0.1")
    assert first != other
    assert first == sorted(first, key=int)


def test_options_of_a_reader_and_of_a_generator(file: str) -> None:
    with Path(file).open("a") as rows:
        rows.write("e,5,-1,1,x,\n")
    assert ids(f"{file}:bad_rows=drop:vc=x") == ["a", "c"]
    made = wt.open_trace("synthetic:kalos:jobs=50:load=0.9:seed=1")
    given = wt.open_trace("synthetic:kalos", jobs=50, load=0.9, seed=1)
    assert made.jobs.equals(given.jobs)
    assert made.metadata == given.metadata
    part = wt.open_trace("synthetic:kalos:jobs=50:seed=1:jobs=first-5:load=0.9")
    assert part.jobs.equals(given.jobs.slice(0, 5))
    assert wt.open_trace("synthetic:gavel:jobs=7:gap=10:slos=yes").jobs.num_rows == 7


def test_dates_are_those_of_the_trace_s_wall_clock(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        + "".join(f"2017-10-{day:02} 09:00:00,5.0,8,40.0,a\n" for day in range(1, 11))
    )
    name = f"{path}:zone=America/Los_Angeles"
    assert len(ids(f"{name}:from=2017-10-03:to=2017-10-05")) == 2
    assert len(ids(f"{name}:from=2017-10-03T09:00:to=2017-10-05T09:00")) == 2
    assert len(ids(f"{name}:from=2017-10-03T16:00:01Z")) == 7
    with pytest.raises(wt.SpecError, match=r"from 2017-10-01T09:00:00 to 2017-10-10T09:00:00"):
        wt.open_trace(f"{name}:to=2016-01-01")


def test_what_stands_beside_the_jobs_is_cut_along(file: str) -> None:
    trace = wt.open_trace(file)
    rows = {"job_id": ["a", "b", "a"], "node": ["n"] * 3, "start_time": [0.0] * 3}
    columns = {key: pa.array(values) for key, values in rows.items()}
    columns["end_time"] = pa.array([1.0] * 3)
    held = companion(HOLDING_COLUMNS, columns)
    whole = wt.Trace(trace.jobs, trace.metadata, tasks=held, holdings=held)
    _, cuts = TraceName.parse("x:vc=x").options(lambda path: path, 1)
    part = cut_trace(whole, cuts)
    assert part.holdings is not None
    assert part.holdings["job_id"].to_pylist() == ["a", "a"]
    assert part.tasks is not None
    assert part.tasks["job_id"].to_pylist() == ["a", "a"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("form=2d", r"unknown name 'form'\. Did you mean 'from'\?"),
        ("from=noon", "found 'noon'; expected a date"),
        ("from=2017-13-01", "found '2017-13-01'; expected a date"),
        ("from=2017-10-01", "have no date; give a time since its begin"),
        ("from=2d", "no job is left of 4. Its jobs were submitted from 0 s to 90000 s"),
        ("sample=0", "expected a share > 0 and <= 1"),
        ("sample=0.5:seed=-1", "expected a seed >= 0"),
        ("sample=0.5:seed=x", "found 'x'; expected a whole number"),
        ("seed=1", "unknown name 'seed'"),
        ("windows=0", "expected a number of windows from 1 to 10,000"),
        ("windows=²", "expected a number of windows from 1 to 10,000"),
        ("blocks=0", "expected a number of blocks from 1 to 10,000"),
        ("blocks=2:seed=-1", "expected a seed >= 0"),
        ("jobs=first-²", "expected first-5000"),
        ("windows=4:seed=4", "seed 4 is none of the 4 windows; expected seeds from 0 to 3"),
        ("jobs=2000", "found '2000'; expected first-5000 or last-5000"),
        ("jobs=first-0", "expected first-5000"),
        ("user=ann", "tell no user"),
        ("vc=X", r"found vc 'X' \(did you mean 'x'\?\); trace 'log' has .* 'x'"),
        ("bad_rows=dorp", "Did you mean 'drop'"),
        ("bad_rows=drop:bad_rows=drop", "is given twice"),
    ],
)
def test_what_is_refused(file: str, settings: str, message: str) -> None:
    with pytest.raises(wt.SpecError, match=message):
        wt.open_trace(f"{file}:{settings}")


def test_known_words_are_listed_once() -> None:
    with pytest.raises(wt.SpecError, match=r"Did you mean 'jobs'\?.* from, gpu_type, jobs, load,"):
        wt.open_trace("synthetic:kalos:jbs=3")


@pytest.mark.parametrize("word", MOVED)
def test_a_name_that_a_message_suggests_can_be_opened(word: str) -> None:
    name = MOVED[word].partition(": ")[2].removesuffix(".")
    assert word in dict(TraceName.parse(name).settings)
    wt.open_trace(name if "jobs=" in name else f"{name}:jobs=20")


@pytest.mark.filterwarnings("error")
def test_a_log_without_times_has_no_windows(tmp_path: Path) -> None:
    file = tmp_path / "untimed.csv"
    file.write_text("job_id,submit_time,duration,num_gpus\na,,1,1\n")
    with pytest.raises(wt.SpecError, match="It tells no times of submission"):
        wt.open_trace(f"{file}:windows=2")


def test_windows_part_a_log(file: str) -> None:
    whole = wt.open_trace(file).jobs["job_id"].to_pylist()
    parts = [wt.open_trace(f"{file}:windows=2", seed=n) for n in range(2)]
    assert [id_ for part in parts for id_ in part.jobs["job_id"].to_pylist()] == whole
    assert parts[1].jobs.equals(wt.open_trace(f"{file}:windows=2:seed=1").jobs)
    assert parts[1].name.endswith(":windows=2:seed=1")


def test_seeds_go_through_the_windows_of_one_made_trace_and_then_of_the_next() -> None:
    made = "synthetic:kalos:jobs=200"
    ids = [
        [
            (row["job_id"], row["submit_time"])
            for n in seeds
            for row in wt.open_trace(f"{made}:windows=2", seed=n).jobs.to_pylist()
        ]
        for seeds in ((0, 1), (2, 3))
    ]
    for found, seed in zip(ids, (0, 1), strict=True):
        whole = wt.open_trace(made, seed=seed).jobs.to_pylist()
        assert found == [(row["job_id"], row["submit_time"]) for row in whole]
    in_name = wt.open_trace(f"{made}:windows=2:seed=3").jobs
    assert in_name.equals(wt.open_trace(f"{made}:windows=2", seed=3).jobs)


@pytest.mark.slow
def test_blocks_of_a_log_are_drawn_with_replacement(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    rows = [f"j{hour},{3600 * hour},60,1" for hour in range(240)]
    file.write_text("\n".join(["job_id,submit_time,duration,num_gpus", *rows]) + "\n")
    length = 239 * 3600 / 10
    drawn = np.zeros(10, dtype=int)
    for seed in range(40):
        part = wt.open_trace(f"{file}:blocks=10", seed=seed)
        names = [name.split("/j") for name in part.jobs["job_id"].to_pylist()]
        assert len(set(map(tuple, names))) == len(names)
        own = {int(place): min(int(int(hour) * 3600 // length), 9) for place, hour in names}
        drawn += np.bincount(list(own.values()), minlength=10)
        for (place, hour), time in zip(names, part.jobs["submit_time"].to_pylist(), strict=True):
            moved = (int(place) - own[int(place)]) * length
            assert time == pytest.approx(int(hour) * 3600 + moved)
        assert part.jobs.equals(wt.open_trace(f"{file}:blocks=10:seed={seed}").jobs)
    assert drawn.sum() == 400
    assert drawn.min() > 20  # each of ten blocks is drawn 40 times in the mean
    assert drawn.max() < 62


@pytest.mark.slow
def test_the_seeds_of_a_study_are_windows(file: str) -> None:
    raw = {
        "traces": [f"{file}:windows=2"],
        "clusters": ["1x16"],
        "options": {"window": "0%..100%"},
        "policies": ["fifo", "sjf"],
        "seeds": 2,
    }
    results = wt.run_study(Study.from_mapping(raw), Path(file).parent / "results")
    flown = {row["seed"]: row["num_jobs"] for row in results.rows if row["policy"] == "fifo"}
    assert sum(flown.values()) == wt.open_trace(file).jobs.num_rows
    assert len(flown) == 2
    assert len(results.manifest["made"]) == 1


def test_an_option_is_given_once() -> None:
    with pytest.raises(wt.SpecError, match="synthetic:kalos:seed: stands in the name and is an"):
        wt.open_trace("synthetic:kalos:seed=1", seed=1)
    with pytest.raises(wt.SpecError, match="found '2'; expected yes or no"):
        wt.open_trace("synthetic:kalos:cpu_jobs=2")
    with pytest.raises(wt.SpecError, match="found 'many'; expected a whole number"):
        wt.open_trace("synthetic:kalos:jobs=many")


def test_a_study_s_traces_have_settings(file: str) -> None:
    folder = Path(file).parent
    raw = {
        "traces": ["log.csv:vc=x", "synthetic:kalos:jobs=9:seed=1", "synthetic:kalos:jobs=9"],
        "policies": ["fifo"],
    }
    entries = Study.from_mapping(raw).located(folder).trace_entries()
    assert [entry.is_made for entry in entries] == [False, False, True]
    assert entries[0].trace == f"{file}:vc=x"
    assert entries[0].label == "log.csv:vc=x"
