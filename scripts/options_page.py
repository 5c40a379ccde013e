"""Write docs/reference/options.md: every option of a run, from the fields that describe it.

``python scripts/options_page.py`` writes the page; a test holds it to the code.
"""

from __future__ import annotations

from pathlib import Path

from windtunnel.site.conditions import FIELDS, HOMES, QUIET
from windtunnel.site.fields import SECTIONS, Field

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "options.md"
HEAD = """# Every option of a run

This page is made from the code. Each option is a field of `Site` (what the cluster is and what
happens to it, whoever schedules), of `Scheduler` (what decides), or of the run itself. It has the
same name everywhere: `--slowdown` on the command line, `slowdown=` in Python, a key of a study's
`[options]` or `[parameters]`, a setting of an outcome. `_` in Python is `-` on the command line.

```python
import windtunnel as wt

jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
site = wt.Site(cluster="pool:1")
scheduler = wt.Scheduler("srtf", save_time=1.0)
assert wt.simulate(jobs, site, scheduler).metrics()["num_jobs"] == 3
# The same in one line: any field may be given by its name.
assert wt.simulate(jobs, "pool:1", "srtf", save_time=1.0).metrics()["num_jobs"] == 3
```

"""


def page() -> str:
    """Return the page."""
    parts = [HEAD.rstrip("\n"), ""]
    for section in SECTIONS:
        parts += [f"## {section.capitalize()}", ""]
        parts += [
            "| option | value | unit | what it is | default | of |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        parts += [_row(name, field) for name, field in FIELDS.items() if field.section == section]
        parts.append("")
    return "\n".join(parts)


def _row(name: str, field: Field) -> str:
    default = field.default or "none"
    if not field.default and QUIET[name] is not None:
        default = f"`{field.default_text(QUIET[name])}`"
    option = f"`--{name.replace('_', '-')}`" if field.is_option else f"`{name}` (Python only)"
    value = f"`{field.metavar}`" if field.metavar else field.kind
    about = f"{field.help} {field.details}".rstrip()
    home = HOMES[name].__name__
    of = f"`{home}`" if home != "Conditions" else "the run"
    cells = (option, value, field.unit, about, default, of)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
