"""Named tuples that kernels get by reference: one pointer, however many arrays they hold.

numba passes tuples by value. Fifty arrays are 350 words, which every kernel takes apart and puts together at each call
and each access; most of the time of the compiler went into that. A class marked with ``by_reference`` is laid out in
memory when Python calls a kernel. Kernels get its address and load what they use. They can read fields, and change the
arrays behind them; they cannot create, return, index or unpack such a tuple. Arrays taken from it own no memory: what a
kernel returns to Python must not be one of them, nor a part of one.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, infer_getattr, lower_getattr_generic, register_model, unbox

ClassT = TypeVar("ClassT", bound=type)

WORD = 8
"""Bytes. Fields begin at multiples of it."""
ITEMS, DATA, SHAPE = 2, 4, 5
"""Words of numba's array: two owners, number and size of items, data; then shape and strides, of each axis one."""
_address = ir.IntType(8).as_pointer()
_word = ir.IntType(64)


class ByReference(types.Type):
    """numba's type of a named tuple that is passed by reference."""

    def __init__(self, name: str, fields: tuple[str, ...], members: tuple[Any, ...]) -> None:
        self.fields, self.members = fields, members
        inside = ", ".join(f"{field}: {member}" for field, member in zip(fields, members, strict=True))
        self._symbol = f"{name}_{hashlib.blake2b(inside.encode(), digest_size=6).hexdigest()}"
        super().__init__(f"{name}({inside})")

    @property
    def mangling_args(self) -> tuple[str, tuple[()]]:
        """Symbol of the type in names of compiled functions; with all members it would fill pages."""
        return self._symbol, ()


def by_reference(cls: ClassT) -> ClassT:
    """The class of named tuples, passed by reference from now on."""
    named: Any = cls

    def typeof(value: Any, context: object) -> ByReference:
        return ByReference(named.__name__, named._fields, tuple(map(_type_of, value)))

    typeof_impl.register(cls)(typeof)
    return cls


_type_of: Any = numba.typeof


@register_model(ByReference)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: object, of: ByReference) -> None:
        super().__init__(manager, of, _address)


@infer_getattr
class _Fields(AttributeTemplate):
    key = ByReference

    def generic_resolve(self, of: ByReference, name: str) -> Any:  # type: ignore[override]
        """Type of a field of named tuples that kernels get by reference."""
        return of.members[of.fields.index(name)] if name in of.fields else None


@functools.cache
def _size(context: Any, member: Any) -> int:
    """Bytes of a kernel's value in memory."""
    return int(context.get_abi_sizeof(context.get_data_type(member)))


@functools.cache
def _offsets(context: Any, of: ByReference) -> tuple[int, ...]:
    """Bytes of a named tuple that kernels get, from the beginning to each field, and to the end."""
    offsets = [0]
    for member in of.members:
        array = isinstance(member, types.Array)
        words = SHAPE + 2 * member.ndim if array else -(-_size(context, member) // WORD)
        offsets.append(offsets[-1] + words * WORD)
    return tuple(offsets)


@lower_getattr_generic(ByReference)
def _field(context: Any, builder: Any, of: ByReference, base: Any, name: str) -> Any:
    """Code that reads a field of a named tuple through the pointer that a kernel gets."""
    at = of.fields.index(name)
    member, offset = of.members[at], _offsets(context, of)[at]

    def load(kind: Any, word: int = 0) -> Any:
        address = builder.gep(base, [_word(offset + WORD * word)], inbounds=True)
        value = builder.load(builder.bitcast(address, kind.as_pointer()))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    if not isinstance(member, types.Array):
        return context.data_model_manager[member].from_data(builder, load(context.get_data_type(member)))
    axes, whole = member.ndim, context.get_value_type(member)
    itemsize = _word(_size(context, member.dtype))
    shape = [load(_word, SHAPE + axis) for axis in range(axes)]
    if member.layout == "C":
        strides = [itemsize]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(extent, strides[0]))
    else:
        strides = [load(_word, SHAPE + axes + axis) for axis in range(axes)]
    items = shape[0] if axes == 1 else load(_word, ITEMS)
    nobody = ir.Constant(_address, None)
    array = whole(ir.Undefined)
    for word, part in enumerate((nobody, nobody, items, itemsize, load(whole.elements[DATA], DATA))):
        array = builder.insert_value(array, part, word)
    for axis in range(axes):
        array = builder.insert_value(array, shape[axis], [SHAPE, axis])
        array = builder.insert_value(array, strides[axis], [SHAPE + 1, axis])
    return array


@unbox(ByReference)
def _laid_out(of: ByReference, source: Any, c: Any) -> Any:
    """Code that lays a named tuple out in memory before a kernel is called."""
    builder, offsets = c.builder, _offsets(c.context, of)
    with builder.goto_entry_block():
        base = builder.bitcast(builder.alloca(_word, max(offsets[-1] // WORD, 1)), _address)
    failed = cgutils.alloca_once_value(builder, cgutils.false_bit)
    cleanups = []
    for at, (member, offset) in enumerate(zip(of.members, offsets, strict=False)):
        item, address = c.pyapi.tuple_getitem(source, at), builder.gep(base, [_word(offset)])
        if isinstance(member, types.Array):
            kind = ir.FunctionType(ir.IntType(32), [c.pyapi.pyobj, _address])
            describe = cgutils.get_or_insert_function(builder.module, kind, "numba_adapt_ndarray")
            error = cgutils.is_not_null(builder, builder.call(describe, [item, address]))
        else:
            native = c.unbox(member, item)
            value = c.context.data_model_manager[member].as_data(builder, native.value)
            builder.store(value, builder.bitcast(address, value.type.as_pointer()))
            error = native.is_error
            if native.cleanup is not None:
                cleanups.append(native.cleanup)
        builder.store(builder.or_(builder.load(failed), error), failed)
    # Loads are marked as invariant, so LLVM must not see that the memory was written to here: an empty instruction
    # that could have changed the address hides it.
    same = ir.FunctionType(_address, [_address])
    hidden = builder.asm(same, "", "=r,0,~{memory}", [base], side_effect=True)

    def cleanup() -> None:
        for clean in reversed(cleanups):
            clean()

    return NativeValue(hidden, is_error=builder.load(failed), cleanup=cleanup if cleanups else None)
