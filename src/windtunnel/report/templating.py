"""The pages' templates: one environment, which escapes everything and knows every name it uses."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from windtunnel.report.format import glue

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What every whole page has in its head, before anything that a policy could forbid.
_HEAD = '<meta charset="utf-8">\n'


def render(template: str, context: dict[str, Any]) -> str:
    """Return a template of `windtunnel.report` filled in.

    Args:
        template: its file's name.
        context: name -> value; every text in it is escaped, unless it is markup.

    Raises:
        jinja2.UndefinedError: the template uses a name that the context lacks.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("windtunnel.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["glue"] = glue
    page = str(environment.get_template(template).render(context))
    return page.replace(_HEAD, _HEAD + _policy(context.get("scripts", ())), 1)


def embedded(data: Any, *, compact: bool = False) -> Markup:
    """Return plain data as the content of a script element of JSON.

    No text of it can leave its place: there is no angle bracket in it.

    Args:
        data: without infinities.
        compact: without spaces.
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":") if compact else None)
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))  # noqa: S704 - see above


def own_script(name: str) -> Markup:
    """Return a script of ours, a file beside the templates."""
    text = files("windtunnel.report").joinpath("templates", name).read_text("utf-8")
    return Markup(text)  # noqa: S704 - ours


def _policy(scripts: Sequence[str]) -> str:
    """Return what tells a browser what a page may do: load nothing, run these scripts alone.

    Whatever else comes to stand in a page as a script does not run.
    """
    digests = [b64encode(sha256(text.encode()).digest()).decode() for text in scripts]
    runs = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"script-src {runs}; style-src 'unsafe-inline'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'\">\n"
    )
