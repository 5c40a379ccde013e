"""`windtunnel serving` with workload files: policies, capacity, sweeps, cases, language models."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.csv as pcsv
import pytest

from windtunnel import serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = "num_models = 6\nrate = 15\ncv = 3\nslo_scale = 5\nduration = 60\n"
LLM_HEAD = "prefill_tokens,decode_seqs,kv_tokens,iteration_time"
PROFILE = serving.synthetic_profile()


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    file = tmp_path / "workload.toml"
    file.write_text(TEXT)
    return file


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    file = tmp_path / "requests.jsonl"
    rows = [{"timestamp": 100 * i, "input_length": 500, "output_length": 9} for i in range(200)]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    return file


def test_a_file_and_options(run: Callable[..., Any], asked: Path) -> None:
    by_file = run("serving", "workload", asked, "--json").json
    options = ("--num-models", 6, "--rate", 15, "--cv", 3, "--slo-scale", 5, "--duration", 60)
    same = run("serving", "workload", *options, "--json").json
    assert {**same, "command": ""} == {**by_file, "command": ""}
    more = run("serving", "workload", asked, "--rate", 30, "--json").json
    assert more["num_requests"] > 1.5 * by_file["num_requests"]
    weights = run("serving", "workload", asked, "--rates", "5,1,1,1,1,1", "--json").json
    assert weights["models"][0]["rate"] > 2 * weights["models"][1]["rate"]


@pytest.mark.parametrize("policy", ["sr", "mp-search", "mp-greedy-2", "sr-ilp", "mp-ilp"])
def test_policies_place_and_serve(run: Callable[..., Any], asked: Path, policy: str) -> None:
    data = run("serving", "simulate", asked, "--policy", policy, "--gpus", 4, "--json").json
    assert sum(np.prod(group["parallel"]) for group in data["placement"]) == 4
    spec = serving.read_workload(asked)
    expected = serving.search(spec.draw(PROFILE), PROFILE, 4, policy)
    assert data["placement"] == expected.placement.data()
    assert data["metrics"]["slo_attainment"] == expected.attainment
    assert data["workload"]["rate"] == 15


def test_placing_anew_while_serving(run: Callable[..., Any], asked: Path, tmp_path: Path) -> None:
    words = ("serving", "simulate", asked, "--policy", "sr-replace-20", "--gpus", 4)
    paid = run(*words, "--load-gib-s", 4, "--json").json
    free = run(*words, "--free-switch", "--json").json
    assert len(paid["starts"]) == len(paid["placements"]) == 3
    assert free["metrics"]["slo_attainment"] > paid["metrics"]["slo_attainment"]
    loading = paid["settings"]["loading"]
    assert loading
    for load in loading:
        assert load["loaded"] > load["drained"] >= paid["starts"][load["segment"]]
    assert "loading" not in free["settings"] or free["settings"]["loading"] == []
    page = tmp_path / "anew.html"
    ran = run(*words, "--out", page)
    assert (ran.code, ran.err) == (0, "")
    text = page.read_text()
    assert "Time-line of groups" in text
    assert "windtunnel serving simulate" in text
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)
    assert run(*words, "--simulator", "events").code == 2


def test_capacity(run: Callable[..., Any], asked: Path, tmp_path: Path) -> None:
    out = tmp_path / "placed.json"
    words = ("serving", "capacity", asked, "--attainment", 0.9, "--refine", 20)
    data = run(*words, "--out", out, "--json").json
    spec = serving.read_workload(asked)
    expected = serving.fewest_gpus(spec.draw(PROFILE), PROFILE, 0.9, refine=20)
    assert data["gpus"] == expected.gpus
    assert data["metrics"]["slo_attainment"] >= 0.9
    assert {row["gpus"]: row["slo_attainment"] for row in data["tried"]} == expected.tried
    assert json.loads(out.read_text()) == data["placement"]
    assert "Searched" in run(*words).out
    assert "at most 0 of the requests" in run(*words, "--slo-scale", 0.01).err


@pytest.mark.slow
def test_sweeps(run: Callable[..., Any], asked: Path, tmp_path: Path) -> None:
    fixed = tmp_path / "pipe.json"
    fixed.write_text('[{"parallel": [1, 1, 4], "models": [0, 1, 2, 3, 4, 5]}]')
    words = ("serving", "sweep", asked, "--gpus", 4, "--refine", 10, "--policy", "sr")
    words = (*words, "--placement", fixed, "--over", "rate=5:20:3", "--over", "slo-scale=2,5")
    data = run(*words, "--json").json
    spec = serving.read_workload(asked)
    candidates = {"sr": "sr", "pipe": serving.as_placement(json.loads(fixed.read_text()))}
    over = {"rate": [5.0, 12.5, 20.0], "slo_scale": [2.0, 5.0]}
    assert data["rows"] == serving.sweep(spec, 4, over, candidates, refine=10).rows
    for name in ("sweep.html", "sweep.svg", "sweep.csv"):
        ran = run(*words, "--out", tmp_path / name)
        assert (ran.code, ran.err) == (0, "")
    page = (tmp_path / "sweep.html").read_text()
    for text in ("Attainment against rate", "Attainment against SLO scale", "pipe", "GPUs down"):
        assert text in page
    assert "--over slo-scale=2,5" in page
    assert pcsv.read_csv(tmp_path / "sweep.csv").num_rows == len(data["rows"])


def test_cases(run: Callable[..., Any], tmp_path: Path) -> None:
    row = {"model_set": ["small"], "num_models": 2, "total_rate": 8.0, "duration_s": 100}
    row |= {"groups": [{"parallel": [1, 1, 2], "models": [0, 1]}], "slo_scale": 2, "goodput": 0.9}
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(row) + "\n" + json.dumps({**row, "total_rate": 1.0}) + "\n")
    out = tmp_path / "cases.csv"
    data = run("serving", "evaluate", file, "--out", out, "--json").json
    found = [serving.evaluate(case, PROFILE) for case in serving.read_cases(file)]
    assert data["cases"] == found
    assert data["largest_difference"] == max(abs(one["difference"]) for one in found)
    assert pcsv.read_csv(out)["goodput"].to_pylist() == [one["goodput"] for one in found]
    assert "2 cases, 2 published" in run("serving", "evaluate", file).out


@pytest.mark.slow
@pytest.mark.data
def test_published_cases(run: Callable[..., Any], data_dir: Path) -> None:
    folder = data_dir / "alpaserve"
    cases = folder / "general_synthetic_bert.jsonl"
    data = run("serving", "evaluate", cases, "--json").json  # with the profile beside it
    assert data["settings"]["profile"] == str(folder / "profile_stages.csv")
    assert (data["num_cases"], data["num_published"]) == (114, 114)
    assert data["largest_difference"] <= 5.1e-4


def test_fitting_a_language_model(run: Callable[..., Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    costs = {"llama/A100": [0.02, 1e-4, 2e-5, 1e-7], "llama/H100": [0.01, 5e-5, 1e-5, 5e-8]}
    lines = [f"model,gpu_type,{LLM_HEAD}"]
    for name, (a, *rest) in costs.items():
        for counts in rng.integers(0, [4000, 64, 100_000], size=(30, 3)).tolist():
            time = a + sum(c * n for c, n in zip(rest, counts, strict=True))
            lines.append(",".join(map(str, [*name.split("/"), *counts, time])))
    file, out = tmp_path / "measured.csv", tmp_path / "models.toml"
    file.write_text("\n".join(lines))
    data = run("serving", "llm-fit", file, "--kv-limit", 5000, "--out", out, "--json").json
    assert [one["name"] for one in data["models"]] == list(costs)
    for one, wanted in zip(data["models"], costs.values(), strict=True):
        keys = ("iteration_s", "prefill_token_s", "decode_seq_s", "kv_token_s")
        assert [one[key] for key in keys] == pytest.approx(wanted, rel=1e-6)
        assert (one["num_rows"], one["mean_relative_error"] < 1e-9) == (30, True)
    model = serving.read_llm_model(f"{out}#llama/H100")
    assert (model.kv_limit, model.iteration_s) == (5000, pytest.approx(0.01))
    assert "llama/A100" in run("serving", "llm-fit", file).out
    file.write_text("\n".join([*lines, "llama,A100,1,2,x,1"]))
    ran = run("serving", "llm-fit", file)
    assert ran.code == 2
    for text in ("measured.csv, line 62", "column 'kv_tokens'", "found 'x'"):
        assert text in " ".join(ran.err.split())
    file.write_text("\n".join([*lines, "llama,A100,1,2,3,1,7"]))
    ran = run("serving", "llm-fit", file)
    assert (ran.code, "line 62" in ran.err, "expected 6 cells" in ran.err) == (2, True, True)


def test_fits_without_a_constant_and_without_a_sense(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    """Costs of tokens alone are a fit; decodes that are free are none, and named beside it."""
    lines = [f"model,{LLM_HEAD}"]
    for prefill, decoding, each in product((0, 64, 512, 900), (0, 1, 8, 64), (100, 700)):
        kv = decoding * each
        time = (2e-5 * prefill + 1e-4 * decoding + 1e-8 * kv) * (1 + 1e-3 * prefill)
        if time:
            lines.append(f"tokens,{prefill},{decoding},{kv},{time!r}")
        if prefill:
            lines.append(f"odd,{prefill},{decoding},{kv},{1e-4 * prefill / (1 + 0.1 * kv)!r}")
    file, out = tmp_path / "measured.csv", tmp_path / "models.toml"
    file.write_text("\n".join(lines))
    ran = run("serving", "llm-fit", file, "--kv-limit", 5000, "--out", out, "--json")
    tokens, odd = ran.json["models"]
    assert (ran.code, tokens["iteration_s"], tokens["error"]) == (1, 0, None)
    assert "odd: iterations that cost time" in odd["error"]
    assert serving.read_llm_model(out).iteration_s == 0


def test_a_fitted_model_serves(run: Callable[..., Any], tmp_path: Path, requests: Path) -> None:
    models = tmp_path / "models.toml"
    text = "iteration_s=0.01\nprefill_token_s=1e-4\ndecode_seq_s=0\nkv_token_s=0\nkv_limit=4000\n"
    models.write_text(f'["a/x"]\n{text}\n["a/y"]\n{text}max_batch=3\n')
    data = run("serving", "llm", requests, "--model", f"{models}#a/y", "--json").json
    assert data["model"]["max_batch"] == 3
    for name, words in (("", "choose one"), ("#a/z", "Did you mean 'a/y'")):
        ran = run("serving", "llm", requests, "--model", f"{models}{name}")
        assert ran.code == 2
        assert words in " ".join(ran.err.split())


def test_language_models_at_other_rates(
    run: Callable[..., Any], tmp_path: Path, requests: Path
) -> None:
    words = ("serving", "llm", requests, "--ttft", 0.5, "--tpot", 0.05)
    data = run(*words, "--rates", "5,40", "--json").json
    assert [row["rate"] for row in data["by_rate"]] == [5, 40]
    at_rate = run(*words, "--rate", 40, "--json").json["metrics"]
    assert data["by_rate"][1] == {"rate": 40, **at_rate}
    for name in ("llm.html", "llm.svg"):
        ran = run(*words, "--out", tmp_path / name)
        assert (ran.code, ran.err) == (0, "")
    page = (tmp_path / "llm.html").read_text()
    for text in ("Time to first token", "Time per output token", "Goodput against rate"):
        assert text in page
    lengths = tmp_path / "lengths.csv"
    lengths.write_text("num_prefill_tokens,num_decode_tokens\n100,5\n300,7\n")
    drawn = ("serving", "llm", lengths, "--rate", 4, "--duration", "50s", "--seed", 3, "--json")
    assert run(*drawn).json["metrics"]["num_requests"] == len(serving.Gamma(4.0).arrivals(50.0, 3))
    assert run("serving", "llm-capacity", lengths, "--ttft", 1).code == 2


def test_carbon_and_tariff_over_time(
    run: Callable[..., Any], tmp_path: Path, requests: Path
) -> None:
    model = tmp_path / "m.toml"
    costs = "iteration_s=0.01\nprefill_token_s=1e-4\ndecode_seq_s=0\nkv_token_s=0\nkv_limit=4000\n"
    model.write_text(f"{costs}[power]\nidle_w=100\nprefill_w=600\ndecode_w=400\n")
    steps = tmp_path / "steps.csv"
    words = ("serving", "llm", requests, "--model", model, "--price", 2, "--json")
    steps.write_text("time,value\n0,300\n1800,300\n")
    one = run(*words, "--carbon", 300, "--tariff", 0.5).json
    two = run(*words, "--carbon", steps, "--tariff", steps).json
    assert (one["settings"]["carbon"], two["settings"]["tariff"]) == (300, str(steps))
    kwh, hours = one["metrics"]["energy_kwh"], one["metrics"]["gpu_hours"]
    assert one["metrics"]["carbon_kg"] == pytest.approx(0.3 * kwh)
    assert two["metrics"]["carbon_kg"] == pytest.approx(0.3 * kwh)
    assert one["metrics"]["money"] == pytest.approx(2 * hours + 0.5 * kwh)
    assert two["metrics"]["money"] == pytest.approx(2 * hours + 300 * kwh)
    searched = run(
        "serving", "llm-capacity", requests, "--model", model, "--ttft", "2s", "--carbon", steps,
        "--dispatch", "least_loaded,round_robin", "--cheapest", "carbon", "--json",
    ).json  # fmt: skip
    asked = ("serving", "llm-capacity", requests, "--model", model, "--ttft", "2s")
    for more, words_of_error in (
        (("--cheapest", "carbon"), "cheapest: found 'carbon' without"),
        (("--cheapest", "money"), "cheapest: found 'money' without"),
        (("--dispatch", "least_loaded,luck"), "dispatch: unknown name 'luck'"),
    ):
        ran = run(*asked, *more)
        assert (ran.code, words_of_error in " ".join(ran.err.split())) == (2, True)
    grams = [choice["carbon_kg"] for choice in searched["choices"]]
    assert grams == sorted(grams)
    assert grams[0] > 0


def test_set_ups_beside_each_other(run: Callable[..., Any], tmp_path: Path, requests: Path) -> None:
    """Every row of a sweep is what `serving llm` tells of the same set-up."""
    model = tmp_path / "m.toml"
    costs = "iteration_s=0.01\nprefill_token_s=1e-4\ndecode_seq_s=0\nkv_token_s=0\nkv_limit=4000\n"
    model.write_text(f"{costs}[power]\nidle_w=100\nprefill_w=600\ndecode_w=400\n")
    words = (requests, "--model", model, "--ttft", 0.5, "--price", 2, "--carbon", 300)
    page = tmp_path / "page.html"
    data = run(
        "serving", "llm-sweep", *words, "--over", "rate=5,40", "--over", "replicas=1,2",
        "--over", "num_blocks=100,200", "--dispatch", "least_loaded,least_tokens",
        "--out", page, "--json",
    ).json  # fmt: skip
    rows = data["rows"]
    assert len(rows) == 12
    options = {"rate": "--rate", "replicas": "--replicas", "num_blocks": "--num-blocks"}
    for row in (*rows[1::4], rows[-2]):
        changed = (options[row["axis"]], int(row["value"]))
        rule = row["candidate"].split(", ")[1]
        alone = run("serving", "llm", *words, *changed, "--dispatch", rule, "--json").json
        assert {name: row[name] for name in alone["metrics"]} == alone["metrics"]
    assert rows[6]["gpus"] == 2
    text = page.read_text()
    for words_of_page in ("GPUs", "kWh", "carbon, kg", "money", "against num_blocks"):
        assert words_of_page in text
    whatif = run(
        "serving", "llm-sweep", *words, "--dispatch", "least_loaded,round_robin",
        "--out", tmp_path / "rows.csv", "--json",
    ).json  # fmt: skip
    base = run("serving", "llm", *words, "--json").json["metrics"]
    assert {name: whatif["rows"][0][name] for name in base} == base
    assert "Requests within all SLOs" in whatif["headline"]
    table = pcsv.read_csv(tmp_path / "rows.csv")
    assert table["money"].to_pylist() == [row["money"] for row in whatif["rows"]]


MINUTES = ",".join(str(minute) for minute in range(1, 1441))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "w.toml"), "expected one of --placement"),
        (("simulate", "w.toml", "--policy", "sr"), "--gpus"),
        (("simulate", "p.json", "--policy", "sr", "--gpus", 2), "a placement goes behind"),
        (("simulate", "w.toml", "--policy", "sr", "--gpus", 2, "--requests", "none.csv"), "none"),
        (("simulate", "gone.toml", "--policy", "sr", "--gpus", 2), "gone.toml"),
        (("simulate", "w.toml", "--policy", "srr", "--gpus", 2), "Did you mean 'sr'"),
        (("simulate", "w.toml", "--policy", "sr-replace-x", "--gpus", 2), "expected seconds"),
        (("search", "w.toml", "--gpus", 2, "--rate", 0), "no requests"),
        (("search", "w.toml", "--gpus", 2, "--rate", "nan"), "finite number"),
        (("search", "w.toml", "--gpus", 2, "--mem-gib", 0.01), "no model fits"),
        (("capacity", "w.toml", "--attainment", 2), "attainment"),
        (("sweep", "w.toml", "--gpus", 2, "--over", "rate"), "expected such as rate=10,20"),
        (("sweep", "w.toml", "--gpus", 2, "--over", "spam=1"), "unknown name 'spam'"),
        (("evaluate", "p.json"), "expected a JSON object"),
        (("evaluate", "gone.jsonl"), "gone.jsonl"),
        (("llm-fit", "w.toml"), "a column 'prefill_tokens'"),
        (("llm-fit", "f.csv", "--out", "x.toml"), "--kv-limit"),
        (("llm", "calls.csv"), "requests with prompt and output tokens"),
        (("llm", "t.jsonl", "--rates", "a"), "expected numbers"),
        (("llm", "t.jsonl", "--ttft", 0), "must be > 0"),
        (("llm", "t.jsonl", "--carbon", -1), "expected a number >= 0, or a CSV file"),
        (("llm", "t.jsonl", "--tariff", "gone.csv"), "gone.csv"),
        (("llm-capacity", "t.jsonl", "--limit", "p99_ttft<=soon"), "found 'p99_ttft<=soon'"),
        (("llm-capacity", "t.jsonl", "--limit", "p99_ttft<=-1s"), "expected a time > 0, such as"),
        (("llm-capacity", "t.jsonl", "--limit", "p99_ttft"), "expected such as p99_ttft<=1s"),
        (
            ("llm-capacity", "t.jsonl", "--limit", "p99_ttft<=1", "--limit", "p99_ttft<=9"),
            "p99_ttft has two limits",
        ),
        (("llm-capacity", "t.jsonl", "--limit", "p99_ttft>=1"), "expected p99_ttft<=X"),
        (("llm-capacity", "t.jsonl", "--limit", "p98_ttft<=1"), "Did you mean 'p99_ttft'"),
        (("llm-capacity", "t.jsonl", "--limit", "goodput>=x"), "expected a number > 0"),
        (("llm-capacity", "t.jsonl", "--limit", "slo_attainment>=2"), "a share, at most 1"),
        (("llm", "t.jsonl", "--price", 1e308), "--price: found 1e+308; expected a number from 0"),
        (("llm-capacity", "t.jsonl", "--ttft", 1, "--tariff", 1e308), "from 0 to 1e+12"),
        (("llm-sweep", "t.jsonl", "--over", "rate"), "expected such as rate=10,20"),
        (("llm-sweep", "t.jsonl", "--over", "rate=1:2:0"), "expected such as rate=10,20"),
        (("llm-sweep", "t.jsonl", "--over", "rate=1:2:100000000"), "at most 10000 values"),
        (("llm-sweep", "t.jsonl", "--over", "spam=1"), "Known: affinity_slack, block_size"),
        (("llm-sweep", "t.jsonl", "--over", "replicas=1.5"), "found 1.5; expected whole numbers"),
        (("llm-sweep", "t.jsonl", "--over", "replicas=inf"), "found inf; expected whole numbers"),
        (
            ("llm-sweep", "t.jsonl", "--over", "replicas=0"),
            "replicas: found 0; expected a whole number >= 1",
        ),
        (("llm-sweep", "t.jsonl", "--over", "prefix_caching=2"), "found 2; expected 0 or 1"),
        (("llm-sweep", "t.jsonl", "--over", "num_blocks=0"), "expected a whole number >= 1"),
        (("llm-sweep", "t.jsonl", "--over", "watermark=2"), "expected 0 to 1"),
        (("llm-sweep", "t.jsonl", "--over", "rate=0"), "expected a finite number > 0"),
        (
            ("llm-sweep", "t.jsonl", "--dispatch", "least_loaded,least_loaded"),
            "expected each set-up once",
        ),
        (("llm", "t.jsonl", "--num-blocks", 10**30), "expected a whole number of at most"),
        (("llm", "t.jsonl", "--affinity-slack", 10**30), "expected a whole number of at most"),
        (("llm-sweep", "t.jsonl", "--tp", "9" * 5000), "expected numbers 1,2,4"),
        (("llm-sweep", "t.jsonl", "--split-ratio", "9" * 5000 + ":1"), "expected ratios 1:1,2:1"),
        (("workload", "calls.csv", "--slice", "5"), "from:until"),
        (("workload", "calls.csv", "--slice", "500:600"), "no requests from 500"),
    ],
)
def test_refusals(
    run: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[Any, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.toml").write_text(TEXT)
    (tmp_path / "p.json").write_text("[]")
    (tmp_path / "f.csv").write_text(f"{LLM_HEAD}\n1,1,1,1\n")
    (tmp_path / "calls.csv").write_text("app,func,end_timestamp,duration\na,f,10,4\nb,g,7,5\n")
    (tmp_path / "t.jsonl").write_text('{"timestamp": 0, "input_length": 9, "output_length": 2}\n')
    ran = run("serving", *arguments)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())
    assert ran.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("calls.csv", "f.csv", "p.json", "t.jsonl", "w.toml"),
    ]
