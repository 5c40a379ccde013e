"""The pages' templates: one environment, which escapes everything and knows every name it uses."""

from __future__ import annotations

from typing import Any

from windtunnel.report.format import glue


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
    return str(environment.get_template(template).render(context))
