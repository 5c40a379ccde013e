"""Handles: many arrays as one pointer, for kernels of many functions.

A function that is handed forty arrays is slow to compile and slow to call. A handle is the address
of a table of (address, shape) entries, one a field; in a kernel ``handle.field`` is the array, made
from its entry, without a reference count (as `windtunnel.sim.compiled.borrow` makes them). A field
may be a handle itself. Whoever hands arrays over keeps the handle alive during the call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.core.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import populate_array

#: Numbers of an entry: address, and up to three dimensions.
WIDTH = 4
_WORD = ir.IntType(64)


class HandleType(types.Type):
    """The type of a handle.

    Args:
        name: what it holds.
        fields: type of each field, in order: arrays, or handles.
    """

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = fields
        super().__init__(name=f"Handle({name}, {fields})")

    def resolve(self, name: str) -> tuple[int, Any]:
        """Return a field's place and type; -1 and None if there is none."""
        for index, (field, kind) in enumerate(self.fields):
            if field == name:
                return index, kind
        return -1, None


class Handle:
    """Arrays to hand to a kernel as one.

    Args:
        parts: a named tuple of C-contiguous arrays of one to three dimensions, and of such tuples.

    Attributes:
        address: of the table of entries.

    Raises:
        ValueError: an array is not contiguous; a kernel would read other memory.
    """

    def __init__(self, parts: Any) -> None:
        held: list[Any] = [Handle(part) if isinstance(part, tuple) else part for part in parts]
        self._held = held  # what the table's addresses point to
        self._table = np.zeros((len(held), WIDTH), dtype=np.int64)
        for entry, part in zip(self._table, held, strict=True):
            if isinstance(part, Handle):
                entry[0] = part.address
                continue
            if not part.flags.c_contiguous:
                raise ValueError("a handle takes C-contiguous arrays")
            entry[0] = part.ctypes.data
            entry[1 : 1 + part.ndim] = part.shape
        fields = tuple(
            (name, part.kind if isinstance(part, Handle) else typeof(part))
            for name, part in zip(parts._fields, held, strict=True)
        )
        self.kind: HandleType = HandleType(type(parts).__name__, fields)
        self.address: int = int(self._table.ctypes.data)


@typeof_impl.register(Handle)
def _typeof_handle(value: Handle, _context: Any) -> HandleType:
    return value.kind


@register_model(HandleType)
class _HandleModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: HandleType) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


@unbox(HandleType)
def _unbox_handle(_kind: HandleType, value: Any, c: Any) -> NativeValue:
    attribute = c.pyapi.object_getattr_string(value, "address")
    number = c.pyapi.long_as_longlong(attribute)
    c.pyapi.decref(attribute)
    return NativeValue(c.builder.inttoptr(number, _WORD.as_pointer()))


@infer_getattr
class _HandleAttributes(AttributeTemplate):
    key = HandleType

    def generic_resolve(self, kind: HandleType, name: str) -> Any:
        return kind.resolve(name)[1]


@lower_getattr_generic(HandleType)
def _get_field(context: Any, builder: Any, kind: HandleType, value: Any, name: str) -> Any:
    index, field = kind.resolve(name)

    def number(at: int) -> Any:
        return builder.load(builder.gep(value, [ir.Constant(_WORD, WIDTH * index + at)]))

    if isinstance(field, HandleType):
        return builder.inttoptr(number(0), _WORD.as_pointer())
    array = context.make_array(field)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(field.dtype))
    shape = [number(1 + axis) for axis in range(field.ndim)]
    strides: list[Any] = []
    step = ir.Constant(_WORD, size)
    for length in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, length)
    populate_array(
        array,
        data=builder.inttoptr(number(0), array.data.type),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=ir.Constant(_WORD, size),
        meminfo=None,
    )
    return array._getvalue()  # noqa: SLF001 - numba's way to read a struct proxy
