"""Changes to values, keys and shapes of JSON."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from mutants import Mutant, changed, shown

if TYPE_CHECKING:
    from samples import Sample

_HOLE = "@@hole@@"
#: JSON texts that may stand where a value should.
VALUES: tuple[str, ...] = (
    *("null", "true", "false", "0", "-1", "-0.0", "1.5", "1e308", "1e400", "-1e400", "1e-400"),
    *("NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1_000", "'x'", "undefined"),
    *("2147483648", "9007199254740993", "9223372036854775808", "9" * 400, "9" * 5000),
    *("1600000000000", '"1600000000000"', '"1.234,5"', '"NaN"', '"inf"', '"-1"', '"1e400"'),
    *('""', '" "', '"x"', '"None"', '"größe"', '"\\u00e9"', '"\\ud800"', '"\\udc00\\ud800"'),
    *('"\\u0000"', '"\\u001b[31m"', '"\\u0007"', '"\x07"', '"two\nlines"', '"open', '"\\x"'),
    *('"2020-02-30 00:00:00"', '"2020-02-30T00:00:00Z"', '"2020-01-01T00:00:00+05:30"'),
    *('"2020-01-01 00:00:00"', '"2020-01-01T00:00:00Z"', '"0001-01-01 00:00:00"'),
    *('"0001-01-01T00:00:00+14:00"', '"9999-12-31 23:59:59"', '"9999-12-31T23:59:59-14:00"'),
    *('"12345-01-01 00:00:00"', '"500m"', '"1e99"', '"-5Gi"', '"8Qi"', "[]", "{}", "[[]]", "[{}]"),
    *("[null]", '["x"]', "[1, 2, 3]", '{"x": 1}', '{"": null}', "[" * 100_000, '{"a":' * 100_000),
    *("[" * 900 + "]" * 900, "[" * 100_000 + "]" * 100_000, '"' + "x" * 10**6 + '"'),
    *("1" * 10**6, "", ",", "]", "}", "/* no */ 1"),
)  # fmt: skip
_TEXTS = st.text(max_size=8).map(json.dumps)
_NUMBERS = st.one_of(st.integers().map(str), st.floats().map(json.dumps))


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a tree, the root's first."""
    found = [path]
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            found += places(value, (*path, key))
    return found


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for key in path:
        tree = tree[key]
    return tree


def with_value(tree: Any, path: tuple[Any, ...], text: str) -> bytes:
    """Return the JSON of a tree with some text, JSON or not, in place of one value."""
    if not path:
        return text.encode()
    tree = copy.deepcopy(tree)
    at(tree, path[:-1])[path[-1]] = _HOLE
    whole = json.dumps(tree, ensure_ascii=False, indent=1)
    return whole.replace(f'"{_HOLE}"', text).encode(errors="surrogatepass")


def record_of(path: tuple[Any, ...], records: tuple[Any, ...]) -> int | None:
    """Return the record in which a path lies, None where it lies outside of all."""
    inside = path[: len(records)] == records and len(path) > len(records)
    return path[len(records)] if inside else None


def records_path(sample: Sample) -> tuple[Any, ...]:
    """Return where the list of records stands in a sample."""
    if isinstance(sample.tree, list):
        return ()
    return next((key,) for key in ("items", "jobs", "data", "users") if key in sample.tree)


@st.composite
def of_value(draw: st.DrawFn, sample: Sample) -> Mutant:
    """Draw a sample with one value replaced."""
    path = draw(st.sampled_from(places(sample.tree)))
    text = draw(st.one_of(st.sampled_from(VALUES), st.sampled_from(VALUES), _TEXTS, _NUMBERS))
    change = f"{sample.name}; {path}: {shown(text)}"
    record = record_of(path, records_path(sample))
    cell = None if record is None or not _stands_alone(text) else (record, str(path[-1]))
    return Mutant(with_value(sample.tree, path, text), change, cell=cell)


def _stands_alone(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@st.composite
def of_shape(draw: st.DrawFn, sample: Sample) -> Mutant:
    """Draw a sample with a key or an item dropped, doubled, renamed, or moved."""
    path = draw(st.sampled_from(places(sample.tree)[1:]))
    kind = draw(st.sampled_from(["drop", "double", "rename", "exchange", "key twice", "wrap"]))
    change = f"{sample.name}; {kind} {path}"
    if kind == "wrap":
        value = at(sample.tree, path)
        start = Mutant(with_value(sample.tree, path, json.dumps([value])), change)
    elif kind == "key twice":
        start = Mutant(_key_twice(sample.tree, path, draw(st.sampled_from(VALUES))), change)
    else:
        tree = copy.deepcopy(sample.tree)
        _reshape(at(tree, path[:-1]), path[-1], kind)
        start = Mutant(json.dumps(tree, ensure_ascii=False, indent=1).encode(), change)
    return draw(changed(start)) if draw(st.integers(0, 4)) == 0 else start


def _reshape(parent: Any, key: Any, kind: str) -> None:
    value = parent.pop(key)
    if isinstance(parent, list):
        if kind == "double":
            parent[key:key] = [value, copy.deepcopy(value)]
        elif kind == "exchange":
            parent.insert(0, value)
        elif kind == "rename":
            parent[key:key] = [{"x": value}]
        return
    others = list(parent)
    if kind == "rename":
        parent[f"{key}x"] = value
    elif kind == "double":
        parent[key] = [value, value]
    elif kind == "exchange" and others:
        parent[key], parent[others[0]] = parent[others[0]], value


def _key_twice(tree: Any, path: tuple[Any, ...], text: str) -> bytes:
    """Return JSON in which an object has a key a second time, before the true one."""
    keys = [place for place, key in enumerate(path) if isinstance(key, str)]
    if not keys:
        return json.dumps(tree).encode()
    path = path[: keys[-1] + 1]
    whole = with_value(tree, path, f"@@@{json.dumps(at(tree, path))}").decode()
    name = json.dumps(path[-1], ensure_ascii=False)
    return whole.replace(f"{name}: @@@", f"{name}: {text}, {name}: ").encode()
