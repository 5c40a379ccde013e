"""Every page that a command writes, in Chromium, made of hostile names, on a telephone in the dark.

No name runs as script, nothing is loaded, the console stays silent, the page itself never scrolls
sideways, and every text stands out against what it lies on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

from windtunnel.cli.root import windtunnel
from windtunnel.schema import as_jobs
from windtunnel.traces.native import write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: What an attacker calls users, jobs, virtual clusters and templates.
HOSTILE = (
    "<script>window.hostile = 1; alert(1)</script>",
    '"><img src=x onerror="window.hostile = 2">',
    "</script><script>window.hostile = 3</script>",
    "</style><script>window.hostile = 4</script>",
    "</svg><svg onload=window.hostile=5>",
    "\x1b[31mred\x1b]0;title\x07",
    "x" * 10_000,
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd\u2066",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:window.hostile=6",
    "nul\x00 and \x08 other\u0085 controls\ufffe",
    "//example.com/x.js",
)
#: The contrast that WCAG 2.2 (AA) asks of text.
_CONTRAST = 4.5
#: Texts of a page whose colour is too near to that of what they lie on.
_FAINT = """least => {
  const channels = text => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return {rgb: found.slice(0, 3), alpha: found.length > 3 ? found[3] : 1};
  };
  const light = rgb => {
    const [r, g, b] = rgb.map(c => (c /= 255) <= 0.04045 ? c / 12.92
      : Math.pow((c + 0.055) / 1.055, 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const under = node => {
    for (let at = node; at; at = at.parentElement) {
      const paint = channels(getComputedStyle(at).backgroundColor);
      if (paint.alpha > 0.5) return paint.rgb;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    if (node.closest("svg, script, style, .hidden")) continue;
    const own = [...node.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !node.getClientRects().length) continue;
    const [a, b] = [light(channels(getComputedStyle(node).color).rgb), light(under(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least) found.push(`${node.textContent.slice(0, 30)}: ${ratio.toFixed(1)}`);
  }
  return found;
}"""


@dataclass(frozen=True)
class Made:
    """How a page comes to be.

    Attributes:
        words: the command; LOG, OUT, DIR and the names of other files stand for paths.
        page: its page, in the folder of the test.
        heading: a text of the page.
        scripts: elements that Vega's charts need; 0 for a page without script.
    """

    words: str
    heading: str
    page: str = "page.html"
    scripts: int = 0
    before: tuple[str, ...] = field(default=())


#: The three elements of a page with one live chart: its numbers, Vega, and what starts it.
_CHART = 3
PAGES = {
    "log": Made("report LOG --cluster 2x8 --out OUT", "Over the calendar", scripts=2),
    "waste": Made("report waste LOG --out OUT", "Whose they are: users"),
    "queue": Made("report queue LOG --cluster 2x8 --job 17 --out OUT", "Who was in front"),
    "cost": Made("report cost LOG --price 2.5 --out OUT", "By virtual cluster"),
    "predict wait": Made("predict wait LOG --gpus 2 --out OUT", "What requests like it waited"),
    "predict effect": Made(
        "predict effect LOG --cluster 2x8 --loads 1 --aging 1 --no-reservations "
        "--model oracle,sjg --out OUT",
        "Error beside effect",
    ),
    "validate": Made("validate LOG --policies fifo --cluster 2x8 --out OUT", "Over time"),
    "whatif": Made(
        "whatif LOG --nodes +1 --cluster 2x8 --queueing skip --price 1 --anyway --out OUT",
        "In numbers",
    ),
    "whatif inverse": Made(
        "whatif LOG --keep-p90-wait 10m --cluster 2x8 --anyway --out OUT", "What was tried"
    ),
    "whatif surface": Made(
        "whatif LOG --surface nodes=1..3/1,policy=fifo,sjf --cluster 2x8 --anyway --out OUT",
        "Pick a run",
        scripts=2,
    ),
    "describe": Made("describe LOG --html OUT", "Headline numbers"),
    "compare": Made(
        "compare LOG --cluster 2x8 --policies fifo,srtf --interactive --out OUT",
        "Who ran where",
        scripts=4,
    ),
    "time-line": Made(
        "simulate LOG --cluster 2x8 --policy srtf --timeline OUT", "Who ran where", scripts=_CHART
    ),
    "figures": Made(
        "figures LOG --out DIR --format svg,html --only job_share,jobs_per_user",
        "exactly what is drawn",
        page="dir/index.html",
    ),
    "a figure": Made(
        "figures LOG --out DIR --format html --only job_share",
        "job",
        page="dir/job_share.html",
        scripts=_CHART,
    ),
    "study": Made(
        "study compare DIR --over users --out OUT",
        "Changes and their intervals",
        before=("study run STUDY --out DIR --workers 1",),
    ),
    "serving": Made(
        "serving simulate --num-models 3 --duration 20 --rate 5 --slo-scale 5 --policy sr "
        "--gpus 4 --out OUT",
        "Which group serves what, when",
    ),
    "serving sweep": Made(
        "serving sweep --num-models 3 --duration 10 --slo-scale 5 --policy sr --gpus 4 "
        "--over rate=2:6:2 --out OUT",
        "Attainment against rate",
    ),
    "serving llm": Made(
        "serving llm REQUESTS --ttft 1 --tpot 0.1 --rates 1,2 --out OUT", "At other rates"
    ),
    "serving llm-capacity": Made(
        "serving llm-capacity REQUESTS --ttft 10 --out OUT", "What was tried"
    ),
    "serving llm-sweep": Made(
        "serving llm-sweep REQUESTS --over rate=1,2 --ttft 1 --out OUT",
        "Requests within their SLO against rate",
    ),
    "serving llm what if": Made(
        "serving llm-sweep REQUESTS --dispatch least_loaded,round_robin --out OUT",
        "Set-ups, against the first",
    ),
    "losses": Made("throughput losses LOSSES --reference a --out OUT", "Losses against"),
    "curve": Made("throughput curve t5 --gpus 1..8 --out OUT", "speed by GPUs"),
    "plans": Made("throughput plan llama7b_bsz16 --out OUT", "LLAMA"),
    "shares": Made("throughput allocate t5 roberta --gpus 4 --out OUT", "GPUs"),
    "energy optimum": Made("energy optimum --workload synthetic --out OUT", "synthetic"),
    "energy simulate": Made(
        "energy simulate --workload synthetic --recurrences 10 --seeds 1 --out OUT", "synthetic"
    ),
    "pack": Made("pack 2x8 LOG --placement best_fit --seeds 1 --out OUT", "best_fit"),
    "gavel": Made("gavel sweep --policies fifo_perf --rates 2 --measure 2:6 --out OUT", "Gavel"),
    "morphling": Made(
        "morphling compare --traces naive --policies antman --penalties 0 --out DIR",
        "Schedulers of reconfigurable jobs",
        page="dir/comparison.html",
    ),
}


def hostile_jobs(n: int = 126) -> dict[str, Any]:
    """Return jobs of hostile users in hostile virtual clusters over two weeks."""
    draw = np.random.default_rng(3)
    submit = np.sort(draw.uniform(0, 14 * 86_400, n)).tolist()
    wait = draw.choice([0.0, 5.0, 900.0], n).tolist()
    run = draw.uniform(60, 9_000, n).tolist()
    status = ("completed", "failed", "cancelled", "completed")
    return {
        "job_id": [str(k + 1) if k < 20 else f"{HOSTILE[k % len(HOSTILE)]}{k}" for k in range(n)],
        "submit_time": submit,
        "start_time": [s + w for s, w in zip(submit, wait, strict=True)],
        "end_time": [s + w + r for s, w, r in zip(submit, wait, run, strict=True)],
        "duration": run,
        "num_gpus": [float((1, 2, 4, 8)[k % 4]) for k in range(n)],
        "estimate": [14_400.0] * n,
        "status": [status[k % 4] for k in range(n)],
        **{
            name: [HOSTILE[(k + shift) % len(HOSTILE)] for k in range(n)]
            for shift, name in enumerate(("user", "vc", "workload", "template"))
        },
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files that commands read: name in `Made.words` -> path, hostile itself."""
    folder = tmp_path_factory.mktemp("hostile")
    log = folder / "<img src=x onerror=alert(1)>.parquet"
    write_parquet(as_jobs(hostile_jobs()), log)  # CSV holds no NUL
    evil = "<script>window.hostile = 7</script>"
    study = folder / "study.toml"
    study.write_text(
        f"""name = "{evil}"
clusters = ["2x8"]
policies = ["fifo", {{ policy = "sjf", name = "{evil}\\u001b[31m" }}]
traces = [{{ trace = "{log.name}", name = "=cmd{evil}" }}]
""",
        encoding="utf-8",
    )
    losses = folder / "losses.csv"
    rows = "".join(f"{k},{3 / k},{3.1 / k}\n" for k in range(1, 31))
    losses.write_text(f"iteration,loss_a,loss_{evil}\n{rows}", encoding="utf-8")
    requests = folder / f"{evil.replace('/', '_')}.csv"
    lines = "".join(f"2023-11-16 18:15:{k:02d}.0,{100 + k},{20 + k}\n" for k in range(50))
    requests.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{lines}", encoding="utf-8")
    paths = {"LOG": log, "STUDY": study, "LOSSES": losses, "REQUESTS": requests}
    return {name: str(path) for name, path in paths.items()}


def written(made: Made, files: dict[str, str], folder: Path) -> Path:
    """Run the commands of a page in this process; return its file."""
    places = {**files, "OUT": str(folder / "page.html"), "DIR": str(folder / "dir")}
    for words in (*made.before, made.words):
        done = CliRunner().invoke(windtunnel, [places.get(word, word) for word in words.split()])
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.output
        assert "\u202e" not in done.output
    return folder / made.page


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_hostile_names_is_harmless_and_readable(
    watch: Callable[..., Any], files: dict[str, str], tmp_path: Path, name: str
) -> None:
    made = PAGES[name]
    if name == "morphling" and not os.environ.get("WINDTUNNEL_DATA"):
        pytest.skip("WINDTUNNEL_DATA is not set: no published workload")
    path = written(made, files, tmp_path)
    assert path.read_bytes().count(b"\x00") == 0
    for width, scheme in ((390, "dark"), (1280, "light")):
        watched = watch(width, scheme)
        page = watched.page
        page.goto(path.as_uri())
        page.get_by_text(made.heading).first.wait_for()
        if made.scripts:
            page.locator("svg.marks, .plots svg, #calendar svg").first.wait_for()
        assert page.locator("script").count() == made.scripts
        assert page.locator("[onerror], [onload], iframe, object, embed, link, base").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("[...document.querySelectorAll('a')].every(a => "
                             "a.getAttribute('href').match(/^(#|[\\w.-]+$)/))")  # fmt: skip
        assert page.evaluate(_FAINT, _CONTRAST) == []
        watched.assert_quiet()
