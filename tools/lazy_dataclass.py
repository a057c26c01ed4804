"""``dataclass`` as in the standard library, except that a class's methods are compiled at their first use.

The standard decorator compiles up to six functions for each class while its module is imported, in 0.3 ms. A
command imports about a hundred such classes and makes instances of a third of them. Two threads that meet at
the first use make the same method twice, so that no lock is needed.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # checkers know it, and not a copy of it
else:

    def dataclass(cls=None, /, **options):
        """The decorator. It takes ``frozen``, ``eq`` and ``repr``."""
        return _decorated(cls, **options) if cls else lambda one: _decorated(one, **options)


def _decorated(cls: type, frozen: bool = False, eq: bool = True, repr: bool = True) -> type:
    # A frozen class may inherit only frozen ones: the standard decorator checks it, and freezes the heir.
    heir = frozen and any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
    wanted = {"__init__": True, "__repr__": repr, "__eq__": eq}
    lazy = [name for name, want in wanted.items() if want and name not in vars(cls)]
    if eq and vars(cls).get("__hash__") is None:  # a class with an __eq__ of its own has None there
        lazy += ["__hash__"] if frozen else []
        cls.__hash__ = None  # type: ignore[assignment]
    cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise its signature is read, in a millisecond
    dataclasses.dataclass(init=False, repr=False, eq=False, frozen=heir)(cls)
    of: Any = cls.__dataclass_params__  # type: ignore[attr-defined]  # for heirs, and for pprint
    of.init, of.repr, of.eq, of.frozen = True, repr, eq, frozen
    for name in lazy:
        setattr(cls, name, _LazyMethod(cls, name))
    if frozen and not heir:
        _freeze(cls)
    return cls


class _LazyMethod:
    """A method that is not compiled yet: the first use puts it in its place."""

    def __init__(self, cls: type, name: str) -> None:
        self.cls, self.name = cls, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = (_init if self.name == "__init__" else _standard)(self.cls, self.name)
        setattr(self.cls, self.name, method)
        return method.__get__(instance, owner)


def _standard(cls: type, name: str) -> Callable[..., Any]:
    """The method that the standard decorator makes of the same fields."""
    fields = {one.name: one for one in dataclasses.fields(cls)}
    same = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__, **fields}
    twin = type(
        cls.__name__, (), {**same, "__annotations__": {one: field.type for one, field in fields.items()}}
    )
    parts = {
        "init": False,
        "repr": name == "__repr__",
        "eq": name == "__eq__",
        "unsafe_hash": name == "__hash__",
    }
    method: Callable[..., Any] = vars(dataclasses.dataclass(**parts)(twin))[name]
    return method


class _Factory:
    def __repr__(self) -> str:  # as the standard one shows it in a signature
        return "<factory>"


_FACTORY = _Factory()


def _init(cls: type, name: str) -> Callable[..., Any]:
    """An ``__init__``. The standard one of a frozen class comes with two more functions."""
    scope: dict[str, Any] = {"_set_field": object.__setattr__, "_no_value": _FACTORY}
    plain, by_name, body = ["self"], ["*"], []
    frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for field in dataclasses.fields(cls):
        word = value = field.name
        if field.default is not MISSING:
            scope[f"_default_{word}"] = field.default
            word = f"{word}=_default_{word}"
        elif field.default_factory is not MISSING:
            scope[f"_default_{word}"] = field.default_factory
            value = f"_default_{word}()" + (f" if {word} is _no_value else {word}" if field.init else "")
            word = f"{word}=_no_value"
        if field.init:
            (by_name if field.kw_only else plain).append(word)
        elif field.default_factory is MISSING:
            continue
        body.append(
            f"_set_field(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = ", ".join(plain + (by_name if by_name[1:] else []))
    lines = "\n  ".join(body or ["pass"])
    source = f"def make({', '.join(scope)}):\n def __init__({head}):\n  {lines}\n return __init__"
    found: dict[str, Any] = {}
    # Compiled first: exec of a text, if it runs while Python exits, hides an interrupt from the exit code.
    code = compile(source, f"<{cls.__qualname__}>", "exec")
    # In the module of the class, if it still exists, as the standard library does.
    exec(code, getattr(sys.modules.get(cls.__module__), "__dict__", {}), found)  # noqa: S102
    init: Callable[..., Any] = found["make"](**scope)
    init.__qualname__ = f"{cls.__qualname__}.{name}"
    init.__annotations__ = {one.name: one.type for one in dataclasses.fields(cls) if one.init} | {
        "return": None
    }
    return init


def _freeze(cls: type) -> None:
    fields = cls.__dataclass_fields__  # type: ignore[attr-defined]

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in fields:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)  # type: ignore[arg-type]

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in fields:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)  # type: ignore[arg-type]

    for method in (__setattr__, __delattr__):
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
        setattr(cls, method.__name__, method)
