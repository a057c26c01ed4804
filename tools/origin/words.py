"""Whether a text contains a value as whole words. A link is one word: a part of an address, path, number or
account does not count."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final

from quoth.tools.origin.links import spans
from quoth.tools.origin.spelling import BLANKS, fold, number, spelling, ungrouped
from quoth.tools.words import STOP_WORDS

MAX_CHARS: Final = 1_000_000  # of all texts together; the oldest are dropped first
_SEARCHED = 5_000  # characters; with fewer in total, the texts themselves are searched first
_TRIED = 200  # maximum number of positions in a text at which a value is compared
_GROUPS = 40  # characters around a position that an account in groups may take
_NEAR = 2_000  # characters around a position searched for the word it is in
_AMOUNT = "$€£¥₹%"
_SEPARATORS = r"""\s"“”„«»‹›<>()\[\]{},;|`—–…、。，；：？！「」『』（）【】《》"""
_PHONE = re.compile(r"\+[0-9]+(?:[ -]\(?[0-9]+\)?){1,5}")
_THOUSANDS = rf"[{_AMOUNT}]?[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:\.[0-9]+)?(?![\w.]*\w)"
_CHUNK = re.compile(rf"{_THOUSANDS}|{_PHONE.pattern}|[^{_SEPARATORS}]+")
_SEPARATOR = re.compile(f"[{_SEPARATORS}]")
_BEFORE, _BEHIND = "'‘’*_~", "'‘’*_~.:!?"
_QUOTED = re.compile(
    r""""([^"\n]{1,300})"|(?<!\w)'([^'\n]{1,300})'(?!\w)|“([^”\n]{1,300})”|`([^`\n]{1,300})`"""
)
_POSSESSIVE = re.compile("['’]s$")
_MARKED = re.compile(r"[#@](\w[\w-]*)")
_ACCOUNT = re.compile("[a-z]{2}[0-9]{2}[a-z0-9]{10,30}|[0-9]{16}")


class WordIndex:
    """The words of texts, for look-ups in constant time."""

    def __init__(self, max_chars: int = MAX_CHARS) -> None:
        self._max = max_chars
        self._texts: deque[str] = deque()
        self._chars = 0
        self._clear()

    def _clear(self) -> None:
        self._whole: set[str] = set()  # whole messages, and texts between quotes
        self._single: set[str] = set()  # single words in all their spellings
        self._starts: dict[str, list[tuple[int, int]]] = {}  # starts of each word: text, offset
        self._ends: list[set[int]] = []
        self._normal: list[str] = []

    def add(self, text: str) -> None:
        """Add the words of a text; if it is too long, only the words of its beginning."""
        text = text[: self._max]
        self._texts.append(text)
        self._chars += len(text)
        if self._chars > self._max:
            while self._chars > self._max * 3 // 4 and len(self._texts) > 1:
                self._chars -= len(self._texts.popleft())
            self._clear()
            for kept in self._texts:
                self._learn(kept)
        else:
            self._learn(text)

    def hold(self, key: str) -> bool:
        """Whether one of the texts contains the normalized value as whole words."""
        if key in self._whole:
            return True
        if is_trivial(key):
            return False
        if key in self._single:
            return True
        if self._chars < _SEARCHED and not any(key in text for text in self._normal):
            return False  # most values are not the person's words, and this check is cheap
        words = list(tokens(key))
        if not words:
            return False
        start, end = words[0]
        last = words[-1][1]
        for place, at in islice(self._starts.get(key[start:end], ()), _TRIED):
            begin = at - start
            if (
                begin >= 0
                and self._normal[place].startswith(key, begin)
                and begin + last in self._ends[place]
            ):
                return True
        return False

    def _learn(self, text: str) -> None:
        normal = " ".join(part for part in re.split(f"[{BLANKS}]+", fold(text)) if part)
        place = len(self._normal)
        ends = set()
        self._whole.add(spelling(text))
        self._whole.update(
            spelling("".join(filter(None, found.groups()))) for found in _QUOTED.finditer(text)
        )
        self._whole.discard("")
        for start, end in tokens(normal):
            word = normal[start:end]
            self._single.update(spellings(word))
            self._starts.setdefault(word, []).append((place, start))
            ends.add(end)
        self._normal.append(normal)
        self._ends.append(ends)


def is_trivial(key: str) -> bool:
    """Whether a value is a single character or a very common word, such as ``the``. It counts as a person's
    word only if it is a whole message or between quotes."""
    return len(key) < 2 or key in STOP_WORDS


def tokens(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each word of a normalized text; a link is one word."""
    at = 0
    for kind, start, end in spans(text):
        if _is_free(text, start, end, kind == "mail"):
            yield from _plain(text, at, start)
            yield start, end
            at = end
    yield from _plain(text, at, len(text))


def _plain(text: str, at: int, stop: int) -> Iterator[tuple[int, int]]:
    for found in _CHUNK.finditer(text, at, stop):
        word = found[0]
        start = found.start() + len(word) - len(word.lstrip(_BEFORE))
        end = found.end() - len(word) + len(word.rstrip(_BEHIND))
        if start < end:
            yield start, end


def _is_free(text: str, start: int, end: int, mail: bool) -> bool:
    """Whether a link is not part of a longer word, such as ``git@x.example:a`` or ``user:word@x.example``."""
    before = text[start - 1] if start else " "
    if not (_SEPARATOR.match(before) or before in "='‘’*_~" or (mail and text[:start].endswith("mailto:"))):
        return False
    behind = end
    while behind < len(text) and text[behind] in _BEHIND:
        behind += 1
    return behind == len(text) or bool(_SEPARATOR.match(text[behind])) or text.startswith(("'s", "’s"), end)


def spellings(word: str) -> Iterator[str]:
    """The value spellings of one word of a text: ``$50.00`` gives 50, ``#general`` also gives general."""
    yield word
    if word.isalpha():
        return
    owner = _POSSESSIVE.sub("", word)
    if owner != word:
        yield owner
    if marked := _MARKED.fullmatch(word):
        yield marked[1]
    if amount := number(word.strip(_AMOUNT).replace(",", "")):
        yield amount
    plain = re.sub("[ ()-]", "", word) if _PHONE.fullmatch(word) else ungrouped(word)
    if plain != word:
        yield plain


def stands(key: str, text: str, *, strict: bool = False) -> bool:
    """Whether a text contains the normalized value as whole words. The text must be in lower case and, for a
    value of several words, have single blanks. With ``strict``, trivial values are searched for, too, and a
    value found too often to check each position counts as contained."""
    key = key.lower()
    if is_trivial(key) and not strict:
        return False
    if len(key) > _NEAR:
        return key in text
    pattern = re.escape(key)
    if key not in text:
        if not _ACCOUNT.fullmatch(key):
            return False
        pattern = "[ -]?".join(re.findall(".{1,4}", key))  # the text may have it in groups of four
    words = list(tokens(key))
    if not words:
        return False
    first, behind = words[0][0], len(key) - words[-1][1]
    places = [place.span() for place in islice(re.finditer(pattern, text), _TRIED)]
    if strict and len(places) == _TRIED:
        return True
    return any(_is_whole(key, text, start, end, first, behind) for start, end in places)


def _is_whole(key: str, text: str, start: int, end: int, first: int, behind: int) -> bool:
    """Whether the text from ``start`` to ``end`` is not part of a longer word. Its own words begin at
    ``first`` and end ``behind`` characters before its end."""
    left, right = max(0, start - _GROUPS), min(len(text), end + _GROUPS)
    while left > max(0, start - _NEAR) and not text[left - 1].isspace():
        left -= 1
    while right < min(len(text), end + _NEAR) and not text[right].isspace():
        right += 1
    words = [(left + one, left + other) for one, other in tokens(text[left:right])]
    if any(one <= start and end <= other and key in spellings(text[one:other]) for one, other in words):
        return True
    begins = any(one == start + first for one, _ in words)
    return begins and any(other == end - behind for _, other in words)
