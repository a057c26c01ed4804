"""The methods compiled at first use do what those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import pprint
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import KW_ONLY, FrozenInstanceError, field
from typing import Any

import pytest

from quoth.tools import lazy_dataclass


def point(dataclass: Callable[..., Any], **options: Any) -> Any:
    @dataclass(**options)
    class Point:
        """A point."""

        x: int
        factory: int = 2  # names that the compiled text could use as well
        set: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False, compare=False)
        counted: int = field(default_factory=lambda: 4, init=False)
        fixed: int = field(default=5, init=False)
        _: KW_ONLY
        name: str = ""
        needed: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "seen", self.x)

    return Point


def outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"eq": False}, {"frozen": True, "repr": False}])
@pytest.mark.parametrize(
    "act",
    [
        lambda cls: vars(cls(1, needed=2)),
        lambda cls: vars(cls(1, 3, [1], needed=2, name="n")),
        lambda cls: cls(1, needed=2).set is cls(1, needed=2).set,
        lambda cls: cls(),
        lambda cls: cls(1, 2, [], 3, 4, needed=2),
        lambda cls: cls(1, needed=2, counted=1),
        lambda cls: repr(cls(1, needed=2)).partition(" at 0x")[0],
        lambda cls: cls(1, needed=2) == cls(1, needed=2, hidden=9),
        lambda cls: cls(1, needed=2) == cls(2, needed=2),
        lambda cls: cls(1, needed=2).__eq__(1),
        lambda cls: len({cls(1, set=(), needed=2), cls(1, set=(), hidden=9, needed=2)}),
        lambda cls: len({cls(1, needed=2)}),
        lambda cls: setattr(cls(1, needed=2), "x", 2),
        lambda cls: setattr(cls(1, needed=2), "other", 2),
        lambda cls: delattr(cls(1, needed=2), "x"),
        lambda cls: delattr(cls(1, needed=2), "seen"),
        lambda cls: setattr(type("Sub", (cls,), {})(1, needed=2), "other", 2),
        lambda cls: setattr(type("Sub", (cls,), {})(1, needed=2), "x", 2),
        lambda cls: delattr(type("Sub", (cls,), {})(1, needed=2), "seen"),
        lambda cls: vars(dataclasses.replace(cls(1, needed=2), x=3)),
        lambda cls: dataclasses.asdict(cls(1, needed=2)),
        lambda cls: vars(copy.deepcopy(cls(1, set=[1], needed=2))),
        lambda cls: str(inspect.signature(cls)),
        lambda cls: (cls.__init__.__qualname__, cls.__init__.__module__, cls.__init__.__annotations__),
        lambda cls: (cls.__match_args__, cls.__doc__, cls.__init__.__defaults__[0]),
        lambda cls: dataclasses.dataclass(frozen=True)(type("Sub", (cls,), {})),
        lambda cls: dataclasses.dataclass(type("Sub", (cls,), {})),
    ],
)
def test_it_is_as_the_standard_one(options: dict[str, Any], act: Callable[[Any], Any]) -> None:
    wanted = outcome(lambda: act(point(dataclasses.dataclass, **options)))
    seen = outcome(lambda: act(point(lazy_dataclass.dataclass, **options)))
    if isinstance(wanted, type):
        wanted, seen = wanted.__name__, seen.__name__
    assert seen == wanted


@lazy_dataclass.dataclass(frozen=True)
class Kept:
    """One that pickle finds."""

    x: int


def test_the_module_of_a_class_may_be_gone_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    made = point(lazy_dataclass.dataclass)
    monkeypatch.setattr(made, "__module__", "gone")
    assert made(1, needed=2).x == 1


def test_it_is_printed_as_the_standard_one() -> None:
    lazy, standard = (
        made(1, needed=2, name="n" * 80)
        for made in map(point, (lazy_dataclass.dataclass, dataclasses.dataclass))
    )
    assert pprint.pformat(lazy) == pprint.pformat(standard)


def test_it_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)


@pytest.mark.parametrize("options", [{}, {"frozen": True}])
def test_methods_of_the_class_stay(options: dict[str, Any]) -> None:
    @lazy_dataclass.dataclass(**options)
    class Own:
        x: int

        def __init__(self) -> None:
            object.__setattr__(self, "x", 7)

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 8

    assert (Own().x, repr(Own()), Own() == 1, hash(Own())) == (7, "own", True, 8)


def test_a_class_that_inherits_a_dataclass_has_the_fields_of_both() -> None:
    @lazy_dataclass.dataclass(frozen=True)
    class Wide(Kept):
        y: int = 2

    assert repr(Wide(1)).endswith("Wide(x=1, y=2)")
    with pytest.raises(FrozenInstanceError):
        Wide(1).y = 3  # type: ignore[misc]
    assert Wide(1) == Wide(1, 2) != Kept(1)
    assert len({Wide(1), Wide(1), Wide(2)}) == 2
    with pytest.raises(TypeError, match="frozen dataclass from a non-frozen"):
        lazy_dataclass.dataclass(frozen=True)(type("Iced", (point(lazy_dataclass.dataclass),), {}))
    with pytest.raises(TypeError, match="non-frozen"):
        lazy_dataclass.dataclass(type("Thawed", (Kept,), {}))


def test_nothing_is_compiled_before_it_is_used() -> None:
    cls = point(lazy_dataclass.dataclass, frozen=True)
    compiled = [
        name for name in ("__init__", "__repr__", "__eq__", "__hash__") if inspect.isfunction(vars(cls)[name])
    ]
    assert compiled == []
    cls(1, needed=2)
    assert inspect.isfunction(vars(cls)["__init__"])
    assert not inspect.isfunction(vars(cls)["__repr__"])


def test_threads_that_meet_at_the_first_use_have_the_same() -> None:
    for _ in range(50):
        cls = point(lazy_dataclass.dataclass, frozen=True)
        together, seen = threading.Barrier(4), []

        def use(cls: Any = cls, together: threading.Barrier = together, seen: list[Any] = seen) -> None:
            together.wait()
            seen.append(
                (repr(cls(1, needed=2)), cls(1, needed=2) == cls(1, needed=2), hash(cls(1, set=(), needed=2)))
            )

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 4
        assert len(set(seen)) == 1


INTERRUPTED = """
import atexit
from quoth.tools.lazy_dataclass import dataclass

@dataclass
class Last:
    x: int

atexit.register(Last, 1)
raise KeyboardInterrupt
"""


def test_a_first_use_at_the_exit_leaves_the_exit_code_of_an_interrupt() -> None:
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True)
    assert ran.returncode == -signal.SIGINT
