"""The page about tools tells every word by which destinations, deletions, payments and secrets are known."""

from __future__ import annotations

import re

import pytest
from pages import page

from quoth.tools.registry.roles import DELETING, DESTINATIONS, NAMING, PASSWORDS, PAYING


@pytest.mark.parametrize("words", [DESTINATIONS, NAMING, DELETING, PAYING, PASSWORDS])
def test_the_page_has_every_word_of_the_lists(words: frozenset[str]) -> None:
    _, _, section = page("tools").partition("* Where values go")
    told = set(re.findall(r"[a-z]+", section.partition("\n* ")[0].lower()))
    assert words - told == {"passwd"} & words  # a spelling of password
