"""Records the person's words, the fields of results, and the texts of a session, to find the origin of a
value.

The session adds entries in the order of its events. Adding is cheap: entries are indexed at the next look-up.
Memory is bounded: the oldest entries are dropped first. A dropped value then has a weaker origin, never a
stronger one."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from threading import RLock
from typing import Any, Final
from urllib.parse import unquote

from quoth.tools.call.call import KINDS, MODEL, ValueOrigin
from quoth.tools.lisp.forms import kebab
from quoth.tools.origin.leaves import is_link, leaves
from quoth.tools.origin.links import links
from quoth.tools.origin.spelling import fold, number, spelling
from quoth.tools.origin.words import WordIndex, stands
from quoth.tools.registry.param_types import WorkspacePath

MAX_TEXT: Final = 8_000_000  # characters of all texts together
MAX_FIELDS: Final = 100_000  # values of fields
MAX_BARRED: Final = 100_000  # values that never become fields; beyond this, no value becomes a field
LONGEST_FIELD: Final = 120  # characters; a longer leaf is a text
_WAITING = 64  # maximum number of entries waiting to be indexed
_PIECE = 3  # characters; a number must be a whole word to be an echo: 202 is not part of 2024
_JOINED = 8  # letters and digits; shorter values are in many texts by chance
_SEARCHED = 1_000_000_000  # characters of arguments, for all values of a result; the rest are echoes
_NO_LETTER = re.compile(r"[\W_]+")
_LINE = re.compile(r"[\n\r\x0b\x0c\x85\u2028\u2029]")
_CELLS = re.compile(r"""[\n\r\t,;:=|"'`<>()\[\]{}]+""")

FreeText = tuple[str, ...] | bool | None


class OriginIndex:
    """The values that one session has seen, with their origins."""

    def __init__(self, max_text: int = MAX_TEXT, max_fields: int = MAX_FIELDS) -> None:
        self._max_text, self._max_fields = max_text, max_fields
        self._lock = RLock()  # tool bodies in threads may look up values
        self._waiting: list[Callable[[], None]] = []
        self._words: dict[str, WordIndex] = {}
        self._fields: dict[str, tuple[str, ...]] = {}
        self._tools: dict[
            tuple[str, ...], tuple[str, ...]
        ] = {}  # each tuple once, because there are many fields
        self._texts: deque[_LowerText] = deque()
        self._text_chars = 0
        self._barred: set[str] = set()
        self._found: dict[tuple[str, str], ValueOrigin] = {}

    def say(self, text: Any, user: str = "") -> None:
        """Add a person's words: a text, or a value leaf by leaf. For other users of the session they count as
        another person's text."""
        self._add(self._digest_words, text, user)

    def result(
        self,
        tool: str,
        value: Any,
        free_text: FreeText = None,
        args: Any = (),
        name: str = "",
        user: str = "",
    ) -> None:
        """Add the result of a call that ended ok. ``free_text`` names the fields that are texts; True means
        all, None means long leaves. A leaf that is also in ``args``, the arguments of the call, is only an
        echo. ``name`` is the name of its texts, such as ``read-file mail.txt``."""
        self._add(self._digest_result, tool, value, free_text, args, name or tool, user)

    def text(self, name: str, text: Any) -> None:
        """Add a text by another author, such as a file, a message or the result of a program."""
        self._add(self._digest_text, name, text)

    def gave(self, args: Any, user: str = "") -> None:
        """Record the arguments of a call that does more than read. A value of unknown origin in them never
        becomes a field: the call may have stored it where a later result returns it."""
        self._add(self._digest_given, args, user)

    def find(self, value: Any, user: str = "") -> ValueOrigin:
        """The origin of one text or number in a call of this user. A path is also looked up as written,
        because the person may have written it that way."""
        if isinstance(value, WorkspacePath) and value.written != value:
            both = [self.find(spelt, user) for spelt in (str(value), value.written)]
            return min(both, key=lambda origin: KINDS.index(origin.kind))
        key = spelling(value)
        if not key:
            return MODEL
        with self._lock:
            self._digest()
            found = self._found.get((key, user))
            if found is None:
                if len(self._found) > 1000:
                    self._found.clear()
                known = ValueOrigin(self._is_said(key, user), self._fields.get(key, ()))
                found = known if known.known else ValueOrigin(text=self._text_with(key, user))
                self._found[key, user] = found
            return found

    def _add(self, digest: Callable[..., None], *what: Any) -> None:
        with self._lock:
            self._waiting.append(partial(digest, *what))
            if len(self._waiting) >= _WAITING:
                self._digest()

    def _digest(self) -> None:
        if self._waiting:
            self._found.clear()
            waiting, self._waiting = self._waiting, []
            for digest in waiting:
                digest()

    def _digest_words(self, text: Any, user: str) -> None:
        words = self._words.setdefault(user, WordIndex())
        for leaf in leaves(text):
            words.add(leaf if isinstance(leaf, str) else spelling(leaf))

    def _digest_text(self, name: str, text: Any) -> None:
        joined = text if isinstance(text, str) else "\n".join(_Parts(text, True).lines)
        if joined:
            self._texts.append(_LowerText(name, joined[: self._max_text].lower()))
            self._text_chars += self._texts[-1].chars
        while self._text_chars > self._max_text:
            self._text_chars -= self._texts.popleft().chars

    def _digest_result(
        self, tool: str, value: Any, free_text: FreeText, args: Any, name: str, user: str
    ) -> None:
        parts = _Parts(value, free_text)
        self._digest_text(name, value if isinstance(value, str) else "\n".join(parts.lines))
        echo = None
        for key in dict.fromkeys(map(spelling, parts.fields[-self._max_fields :])):
            known = self._fields.get(key, ())
            if tool in known or not key:
                continue
            if not known and not self._is_said(key, user):
                echo = echo or _Echo(args)
                if self._is_barred(key) or echo.has(key):
                    continue
            now = (*known, tool)
            self._fields[key] = self._tools.setdefault(now, now)
        for key in list(islice(self._fields, max(0, len(self._fields) - self._max_fields))):
            del self._fields[key]

    def _digest_given(self, args: Any, user: str) -> None:
        for leaf in leaves(args):
            if self._is_known(spelling(leaf), user):
                continue
            for part in (leaf, *_pieces(leaf)):
                key = spelling(part)
                if key and len(self._barred) <= MAX_BARRED and not self._is_known(key, user):
                    self._barred.add(key)

    def _is_barred(self, key: str) -> bool:
        return key in self._barred or len(self._barred) > MAX_BARRED

    def _is_known(self, key: str, user: str) -> bool:
        return key in self._fields or self._is_said(key, user)

    def _is_said(self, key: str, user: str) -> bool:
        words = self._words.get(user)
        return words is not None and words.hold(key)

    def _text_with(self, key: str, user: str) -> str:
        """The name of the oldest text that contains a value: newer ones may only repeat it."""
        for text in self._texts:
            if text.has(key):
                return text.name
        others = (other for other, words in self._words.items() if other != user and words.hold(key))
        return next((f"a message of {other or 'somebody else'}" for other in others), "")


class _LowerText:
    """A text in lower case. Repeated blanks are reduced to one when a value of several words is looked up."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.chars = len(text)
        self._text = text
        self._flat = False

    def has(self, key: str) -> bool:
        if " " in key and not self._flat:
            self._text, self._flat = _flat(self._text), True
        return stands(key, self._text)


class _Echo:
    """The arguments of a call. A value that a result only repeats, decodes, cuts or joins from them is an
    echo."""

    def __init__(self, args: Any) -> None:
        given = [leaf if isinstance(leaf, str) else spelling(leaf) for leaf in leaves(args)]
        texts = [_flat(text).lower() for leaf in given for text in {leaf, unquote(leaf)}]
        self._whole = {key for text in texts for key in (spelling(text), *_words(text))}
        self._letters = _NO_LETTER.sub("", fold("".join(given)))
        self._given = "\n".join(texts)
        self._left = _SEARCHED // (len(self._given) + 1)

    def has(self, key: str) -> bool:
        self._left -= 1
        if key in self._whole or self._left < 0:
            return True
        if not number(key) and len(key) >= _PIECE and key in self._given:
            return True
        if stands(key, self._given, strict=True):
            return True
        letters = _NO_LETTER.sub("", key) if len(self._letters) >= _JOINED else ""
        return len(letters) >= _JOINED and letters in self._letters


class _Parts:
    """The parts of a result: its lines, and the leaves that are whole values of fields."""

    def __init__(self, value: Any, free_text: FreeText) -> None:
        self.lines: list[str] = []
        self.fields: list[Any] = []
        self._declared = free_text is not None
        self._texts = frozenset(map(kebab, free_text)) if isinstance(free_text, tuple) else frozenset()
        self._walk(value, free_text is not True)

    def _walk(self, value: Any, may_be_field: bool) -> None:
        if isinstance(value, str):
            self.lines.append(value)
            if may_be_field and (self._declared or _is_short(value)):
                self.fields.append(value)
        elif isinstance(value, dict):
            for key, item in value.items():
                here = may_be_field and not (self._texts and kebab(str(key)) in self._texts)
                self.lines.append(str(key))
                if here and is_link(key) and (self._declared or _is_short(key)):
                    self.fields.append(key)
                self._walk(item, here)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._walk(item, may_be_field)
        elif value is not None and not isinstance(value, bool):
            self.lines.append(spelling(value))
            if may_be_field:
                self.fields.append(value)


def _is_short(text: str) -> bool:
    """Whether a leaf is short and on one line: then it is a field, unless its tool says which leaves are
    texts."""
    return len(text) <= LONGEST_FIELD and not _LINE.search(text)


def _pieces(text: Any) -> Iterator[str]:
    """The pieces that a tool can cut out of a given text: its links, the parts between lines, commas and
    colons, and the words of a short text."""
    for plain in {text, unquote(text)} if isinstance(text, str) else ():
        yield from (link.text for link in links(plain))
        yield from _CELLS.split(plain)
        if _is_short(plain):
            yield from (word for word in _words(plain) if not number(word))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _words(text: str) -> list[str]:
    return _NO_LETTER.split(fold(text))
