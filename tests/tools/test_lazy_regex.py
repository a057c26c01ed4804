"""A pattern compiled at its first use does what one of ``re`` does."""

from __future__ import annotations

import copy
import pickle
import re
from importlib import import_module
from pathlib import Path

import pytest
from words import sources

from quoth.tools import lazy_regex


def test_it_is_as_one_of_re(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy, eager = lazy_regex.compile("(?P<a>x)|y", re.IGNORECASE), re.compile("(?P<a>x)|y", re.IGNORECASE)
    assert (lazy.pattern, lazy.flags, lazy.groups, dict(lazy.groupindex)) == (
        (eager.pattern, eager.flags, eager.groups, dict(eager.groupindex))
    )
    assert lazy.sub("-", "aXb") == "a-b"
    monkeypatch.setattr(re, "compile", None)  # it is compiled once
    assert [found["a"] for found in lazy.finditer("Xy")] == ["X", None]
    assert lazy.fullmatch("xx") is None


def test_it_is_copied_and_pickled() -> None:
    lazy = lazy_regex.compile("(?P<a>x)|y", re.IGNORECASE)
    for other in (copy.copy(lazy), copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert other.sub("-", "aXb") == "a-b"


def test_nothing_is_compiled_before_it_is_used() -> None:
    broken = lazy_regex.compile("(")
    assert broken.pattern == "("
    with pytest.raises(re.error):
        broken.search("")


def users() -> list[str]:
    named = [path for path in sources(".py") if "lazy_regex.compile(" in path.read_text()]
    root = Path(lazy_regex.__file__).parent.parent
    return [".".join(("quoth", *path.relative_to(root).with_suffix("").parts)) for path in named]


def patterns(value: object) -> list[re.Pattern[str]]:
    if isinstance(value, (list, tuple, dict)):
        return [
            one for each in (value.values() if isinstance(value, dict) else value) for one in patterns(each)
        ]
    return [value] if isinstance(value, lazy_regex._LazyPattern) else []


@pytest.mark.parametrize("module", users())
def test_every_pattern_of_ours_can_be_compiled(module: str) -> None:
    found = patterns(list(vars(import_module(module.removesuffix(".__init__"))).values()))
    assert found
    assert all(one.flags & re.UNICODE or one.flags & re.ASCII for one in found)
