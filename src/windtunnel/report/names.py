"""Names from traces and users are untrusted text: make them safe to show anywhere.

Control characters, terminal escapes, line breaks, zero-width and bidirectional marks are taken out;
very long names are cut in the middle of nowhere but visibly. Escaping for HTML, SVG and rich markup
is the renderer's business (always on there); this is about what remains harmful after escaping.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Names are cut to this many characters.
MAX_NAME = 40
#: Longer texts (settings, notes, commands) are cut to this many.
MAX_TEXT = 400
_ELLIPSIS = "\u2026"
_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)")
#: Combining marks beyond this many in a row are dropped (they climb over neighbouring lines).
_MAX_MARKS = 3


def clean(text: Any, limit: int = MAX_NAME) -> str:
    r"""Return ``text`` as one harmless line of at most ``limit`` characters.

    >>> clean("a\x1b[31mred\u202e"), clean("x" * 50, 8), clean("  "), clean("two\nlines")
    ('ared', 'xxxxxxx…', '(unnamed)', 'two lines')
    """
    raw = str(text)[: 16 * limit]
    kept: list[str] = []
    marks = 0
    for char in _ANSI.sub("", raw):
        category = unicodedata.category(char)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        if char in "\t\n\r\v\f" or category in {"Zl", "Zp", "Zs"}:
            kept.append(" ")
        elif category not in {"Cc", "Cf", "Cs", "Cn"} and marks <= _MAX_MARKS:
            kept.append(char)
    line = " ".join("".join(kept).split())
    if not line:
        return "(unnamed)"
    return line if len(line) <= limit else line[: limit - 1].rstrip() + _ELLIPSIS


def labels(names: Iterable[Any], limit: int = 28) -> list[str]:
    r"""Return one distinct harmless label a name, in order.

    >>> labels(["fifo", "fi\x00fo", "sjf"])
    ['fifo', 'fifo (2)', 'sjf']
    """
    seen: dict[str, int] = {}
    result: list[str] = []
    for name in names:
        label = base = clean(name, limit)
        while label in seen:
            seen[base] += 1
            label = f"{base} ({seen[base]})"
        seen[label] = 1
        result.append(label)
    return result


def name_text(name: Any) -> str:
    """Return a name made harmless; an en dash where there is none."""
    return clean(name) if name else "\u2013"
