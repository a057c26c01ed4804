"""Redaction: removes declared secrets, and texts that look like keys or passwords, before storage or display.
Also removes, from the answers of servers, the credentials that were sent to them.

Redaction never changes a call, only the copy that is stored or shown.

Limits: the digest is of the true call, so it confirms a correct guess of a secret. In the text of a program a
declared secret is recognised only by its keyword; without a keyword it must look like a secret. A secret that
looks like an ordinary word, in an argument that was not declared secret, is not recognised.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from operator import is_
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from quoth.tools import lazy_regex
from quoth.tools.errors import ANSWER, PERMISSION
from quoth.tools.lisp.forms import CallForm, canonical, kebab
from quoth.tools.lisp.printer import MAX_DEPTH, Code, FormData, print_string
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.values import encodable
from quoth.tools.text import short

if TYPE_CHECKING:
    from quoth.tools.registry.table import ToolTable
    from quoth.tools.storage.lean_httpx import httpx


SECRET = "[secret]"  # noqa: S105
KEPT_CHARS = 2000  # of any one text
MARGIN = 4096  # characters read beyond that, so that a secret at the cut is recognised as a whole
HARMLESS = {
    "api-version",
    "api_version",
    "version",
    "v",
    "alt",
    "region",
    "deployment",
    "model",
}  # in a query
ADDRESS = "url"  # the argument whose user name and password are never shown
SHORTEST = 4  # characters; a shorter secret is not searched in other texts: it would be found everywhere

# Words whose value is a secret. The first letter is a set of its own, in both cases, because re then skips
# all other letters at once; that "sassword" matches too does no harm.
_WORDS = (
    r"[acpstACPST](?i:ass(?:word|wd|phrase)|ecret|oken|redentials?|uthorization"
    r"|pi[-_]?key|(?:ccess|rivate|igning|ecret)[-_]?key)"
)
_SPOKEN = ("pass", "secret", "token", "credential", "authorization", "key")
_NAME = lazy_regex.compile(rf"(?:.*[-_.])?{_WORDS}\Z", re.DOTALL)
_HIDDEN = rf"""(?!\\?["']?{re.escape(SECRET)})"""
_QUOTED = r"""(?:\\?"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)"""
_BARE = r"""[^\s"'`,;&()\[\]{}]+"""
_VALUE = rf"{_HIDDEN}(?:{_QUOTED}|{_BARE})"

# Patterns of secrets, their replacements, and hints: the search runs only if the text, in small letters,
# contains a hint. They apply one after the other, each to the whole text.
_LOOKS: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = tuple(
    (lazy_regex.compile(pattern), instead, hints)
    for pattern, instead, hints in (
        (
            r"-----BEGIN [A-Z0-9 ]{1,60}-----(?s:.*?)(?:-----END [A-Z0-9 ]{1,60}-----|\Z)",
            SECRET,
            ("-----begin",),
        ),
        (r"\bsk[-_][A-Za-z0-9_-]{8,}", SECRET, ("sk-", "sk_")),
        (r"\bgh[opusr]_[A-Za-z0-9]{8,}", SECRET, ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
        (r"\b(?:github_pat_|glpat-|hf_|npm_)[A-Za-z0-9_-]{8,}", SECRET, ("_pat_", "glpat-", "hf_", "npm_")),
        (r"\b(?:AKIA|ASIA)[A-Z0-9]{8,}", SECRET, ("akia", "asia")),
        (r"\bAIza[A-Za-z0-9_-]{20,}", SECRET, ("aiza",)),
        (r"\bxox[a-z]-[A-Za-z0-9-]{6,}", SECRET, ("xox",)),
        (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", SECRET, ("eyj",)),
        (r"\b((?i:bearer|basic))\s+[A-Za-z0-9._~+/=-]{6,}", rf"\1 {SECRET}", ("bearer", "basic")),
        (r"(://[^/\s:@]{0,100}):[^/\s@]{1,200}@", rf"\1:{SECRET}@", ("://",)),
        # PASSWORD=x, "api_key": "x", token_prod: x
        (rf"""({_WORDS}(?:[-_]\w{{1,20}})?\\?["']?\s*(?:=>|=(?!>)|:)\s*){_VALUE}""", rf"\1{SECRET}", _SPOKEN),
        (rf"((?i:key)\s*=\s*){_VALUE}", rf"\1{SECRET}", ("key",)),
        # (setv token "x"), {"password" "x"}, --token x
        (rf"""({_WORDS}\\?["']?\s+){_HIDDEN}{_QUOTED}""", rf'\1"{SECRET}"', _SPOKEN),
        (rf"(--?{_WORDS}\s+){_HIDDEN}{_BARE}", rf"\1{SECRET}", _SPOKEN),
    )
)
_HINTS = sorted({hint for *_, hints in _LOOKS for hint in hints})


def may_hold_secrets(text: str) -> bool:
    """Whether ``redact`` may find something in a text or a part of it, or a name in it may sound secret."""
    lower = text.lower()
    for hint in _HINTS:  # noqa: SIM110  any() takes twice as long, at each event
        if hint in lower:
            return True
    return False


_USER_INFO = lazy_regex.compile(r"(\A|[/\\]{2})[^/\\?#\s]*@")


def redact(text: str) -> str:
    """The text with everything that looks like a secret replaced."""
    lower = text.lower()
    if found := {hint for hint in _HINTS if hint in lower}:
        for pattern, instead, hints in _LOOKS:
            if not found.isdisjoint(hints):
                text = pattern.sub(instead, text)
    return text


def redact_line(text: str, names: Collection[str]) -> str:
    """A line that a person typed, a program or a task, with its secrets replaced for storage."""
    hide = Redactor(CallForm("", {"line": Code(text)}), (), names, by_looks=False, everywhere=True)
    return redact(str(hide.form.args["line"]))


def redact_url(url: str) -> str:
    """A server's address without user names, and without query values not known to be harmless."""
    url = re.sub(r"(://)[^/\s?#]*@", rf"\1{SECRET}@", url)
    head, mark, query = url.partition("?")
    return head + mark + re.sub(r"([^&=#]*)=([^&#]+)", _bare_pair, query)


def _bare_pair(pair: re.Match[str]) -> str:
    return pair[0] if pair[1].lower() in HARMLESS else f"{pair[1]}={SECRET}"


@lru_cache(maxsize=1024)  # few names, repeated often
def sounds_secret(name: str) -> bool:
    """Whether a parameter's name marks its value as a secret: ``password``, ``api-key``, ``github_token``."""
    return _NAME.match(name) is not None


def kept_text(text: str) -> str:
    """A text as it is stored beside the call, without secrets."""
    return short(encodable(text[: KEPT_CHARS + MARGIN]), KEPT_CHARS)


class Redactor:
    """One call with its secrets replaced, and methods that redact texts about it.

    ``params`` are the tool's parameters, if there is a tool; ``names`` are the secret parameters of all
    tools, which may occur in an argument that is a program. With ``by_looks=False`` only declared secrets are
    replaced: a person who judges a call must see everything else. ``everywhere`` also replaces a secret's
    value where it occurs in other arguments; its default is ``by_looks``.
    """

    def __init__(
        self,
        form: CallForm,
        params: Sequence[Param] = (),
        names: Collection[str] = (),
        *,
        by_looks: bool = True,
        everywhere: bool | None = None,
    ) -> None:
        self._by_looks = by_looks
        self._declared = {param.name for param in params if param.secret}
        self._harmless = {PERMISSION, ANSWER, *(param.name for param in params)} - self._declared
        self._programs = {param.name for param in params if param.type is Code}
        self._values: set[str] = set()
        self._in_code = _keywords(frozenset(names) | self._declared)
        args = {name: self._argument(kebab(str(name)), value) for name, value in form.args.items()}
        # The parameter of a positional argument is not known here: it may be a secret one.
        places = tuple(self._argument("", value) for value in form.positional)
        self.found = sorted(self._values, key=len, reverse=True)
        if self.found and (by_looks if everywhere is None else everywhere):
            args = {name: map_texts(value, self._bare) for name, value in args.items()}
            places = tuple(map_texts(value, self._bare) for value in places)
        elif self.found and ANSWER in args:  # the question's words come from the body
            args[ANSWER] = map_texts(args[ANSWER], self._bare)
        same = all(args[name] is value for name, value in form.args.items()) and all(
            map(is_, places, form.positional)
        )
        self.form = form if same else CallForm(form.tool, args, places)

    @classmethod
    def of(cls, form: CallForm, table: ToolTable, *, by_looks: bool = True) -> Redactor:
        """The redactor for a call of a tool, which may be in the table."""
        tool = table.find(form.tool)
        return cls(form, tool.params if tool else (), table.secrets, by_looks=by_looks)

    def text(self, text: str) -> str:
        """A sentence about the call, redacted; cut to KEPT_CHARS for storage unless ``by_looks`` is False."""
        if not text:
            return text
        text = self._bare(text)
        return self._kept(text) if self._by_looks else text

    def data(self, value: Any) -> Any:
        """Plain data about the call, redacted."""
        return map_texts(self._value(value), self.text) if value else value

    def _bare(self, text: str) -> str:
        for value in self.found:
            text = text.replace(value, SECRET)
        return text

    def form_text(self) -> str:
        """The redacted call as canonical text, cut to KEPT_CHARS."""
        return self._kept(canonical(self.form))

    def _kept(self, text: str) -> str:
        return kept_text(redact(text[: KEPT_CHARS + MARGIN]))

    def _argument(self, name: str, value: Any) -> Any:
        if self._declared and name not in self._harmless:
            return self._hide(value)
        if type(value) is str and self._programs and (not name or name in self._programs):
            value = Code(value)  # a model may write a program as a string
        if name == ADDRESS and type(value) is str:
            value = _USER_INFO.sub(rf"\1{SECRET}@", value)
        return self._named(name, value)

    def _named(self, name: str, value: Any, depth: int = 0) -> Any:
        if self._by_looks and sounds_secret(name):
            return self._hide(value)
        return self._value(value, depth)

    def _hide(self, value: Any) -> Any:
        """Hide a value in all texts; True, False and None are not secrets."""
        if value is None or isinstance(value, bool):
            return value
        for leaf in _leaves(value):
            text = str(leaf)
            spelt = (text, print_string(text)[1:-1], json.dumps(text)[1:-1])
            self._values |= {form for form in spelt if len(form) >= SHORTEST and form not in SECRET}
        return SECRET

    def _hide_spelt(self, spelt: str) -> None:
        """Hide a value as a program spells it, unless it is a name."""
        if spelt[:1] in "\"'" or spelt[:1].isdigit():
            inner = spelt.strip("\"'")
            self._hide(inner)
            with contextlib.suppress(ReadError):
                self._hide(str(read_one(spelt)))

    def _value(self, value: Any, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            return "…"
        if isinstance(value, str):
            text: str = value
            if isinstance(value, Code) and self._in_code is not None:
                for match in self._in_code.finditer(text):
                    self._hide_spelt(match[0].removeprefix(match[1]))
                text = self._in_code.sub(rf'\1"{SECRET}"', text)
            if self._by_looks:
                text = redact(text[: KEPT_CHARS + MARGIN])
            return Code(text) if isinstance(value, Code) else text
        if isinstance(value, Mapping):
            return {key: self._named(str(key), item, depth + 1) for key, item in self._some(value.items())}
        if isinstance(value, (list, tuple)):
            # In an argument vector the preceding flag names the value: ["login" "--token" "x"].
            names = ["", *(item if isinstance(item, str) and item[:1] == "-" else "" for item in value)]
            return [self._named(name, item, depth + 1) for name, item in self._some(zip(names, value))]  # noqa: B905
        return value

    def _some(self, items: Any) -> Iterator[Any]:
        """Only as many items as the stored text can show."""
        return islice(items, KEPT_CHARS // 2) if self._by_looks else iter(items)


@lru_cache(maxsize=64)
def _keywords(names: frozenset[str]) -> re.Pattern[str] | None:
    """``:pin "1234"`` in the text of a program."""
    spelt = "|".join(re.escape(name).replace(r"\-", "[-_]") for name in sorted(names))
    return re.compile(rf"(:(?:{spelt})\s+){_VALUE}", re.IGNORECASE) if names else None


def map_texts(value: Any, hide: Callable[[str], str], depth: int = 0) -> Any:
    """Plain data with ``hide`` applied to every text, and to numbers that it would replace as texts."""
    if isinstance(value, Code):
        return Code(hide(value))
    if isinstance(value, FormData) and hide(str(value)) == str(value):
        return value
    if isinstance(value, str):
        return hide(value)
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {
            map_texts(key, hide, depth + 1): map_texts(item, hide, depth + 1) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [map_texts(item, hide, depth + 1) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return SECRET if hide(str(value)) == SECRET else value
    return value


def _leaves(value: Any) -> Iterator[Any]:
    """The texts and numbers in a value."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
        elif item is not None and not isinstance(item, bool):
            yield item


# Removes the credentials that this process sends to servers from the texts that servers send back.
#
# Every text of a server passes ``SENT`` where it enters: replies and refusals of models and of embedding
# servers (neuro), messages of workers, pages and redirects, and the values that bodies return to the door. A
# key is recognised across pieces of a stream, in base64, percent-encoded, escaped as in JSON or HTML, and in
# hexadecimal. Not recognised: other encodings, a key divided among several fields, and a key of fewer than
# SHORTEST_KEY characters without its header: it would be found in ordinary words.


SHORTEST_KEY = 8  # characters
MOST = 100  # credentials; the least recently sent is dropped first
# Headers that do not identify the sender.
_COMMON = lazy_regex.compile(
    r"accept(-\w+)?|cache-control|connection|content-\w+|date|host|if-[\w-]+|origin|range|referer|user-agent",
    re.IGNORECASE,
)
_KEY_NAME = lazy_regex.compile(r"(?:.*[-_.])?(?:auth|key|sig|signature|session|cookie|appid)\Z", re.DOTALL)
_RANDOM = lazy_regex.compile(r"(?=.*[0-9])(?=.*[A-Za-z])\S{16,}\Z")


def credentials(headers: Mapping[str, str], url: httpx.URL, *, chosen: bool = True) -> Iterator[str]:
    """The texts by which a request identifies its sender. In an address that a person has ``chosen`` for a
    server, every value of the query counts; in any other address, only values whose name sounds secret."""
    yield url.password
    for name, value in url.params.multi_items():
        if _names_credential(name) or (chosen and name.lower() not in HARMLESS):
            yield value
    for name, value in headers.items():
        if not _COMMON.fullmatch(name):
            yield from _in_header(value.strip(), sure=_names_credential(name))


def from_environment(*parts: object) -> Iterator[str]:
    """The secrets from environment variables that occur in parts of a request."""
    whole = repr(parts)
    for name, value in os.environ.items():
        if len(value) >= SHORTEST_KEY and sounds_secret(name) and value in whole:
            yield value


def _names_credential(name: str) -> bool:
    return sounds_secret(name) or _KEY_NAME.match(name.lower()) is not None


def _in_header(value: str, *, sure: bool) -> Iterator[str]:
    scheme, _, rest = value.partition(" ")
    words = [rest or scheme, *(word.strip('"') for word in re.split(r"[\s;,]+", rest or scheme))]
    words += [word.partition("=")[2].strip('"') for word in words]
    found = [word for word in words if len(word) >= SHORTEST_KEY and (sure or _RANDOM.match(word))]
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            found.append(base64.b64decode(rest).decode().partition(":")[2])
    yield from found or ([value] if sure else [])


class Echoes:
    """Remembers the credentials that were sent, and removes them from texts. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}  # each with its possible spellings
        self._spellings: tuple[str, ...] = ()  # of all, the longest first
        self._begins: frozenset[str] = frozenset()  # their first letters
        self._lock = threading.Lock()

    def learn(self, *secrets: str) -> None:
        """Remember secrets that are about to be sent."""
        with self._lock:
            found = {secret: self._known.get(secret) for secret in secrets if len(secret) >= SHORTEST_KEY}
            known = {secret: spelt for secret, spelt in self._known.items() if secret not in found}
            known |= {secret: spelt or _spellings(secret) for secret, spelt in found.items()}
            self._known = dict(list(known.items())[-MOST:])
            if None in found.values():
                every = {spelling for spelt in self._known.values() for spelling in spelt}
                self._spellings = tuple(sorted(every, key=len, reverse=True))
                self._begins = frozenset(spelling[0] for spelling in every)

    def forget(self) -> None:
        """Forget all secrets, for another test."""
        self._known, self._spellings, self._begins = {}, (), frozenset()

    def without(self, text: str) -> str:
        """The text without any of them."""
        for spelling in self._spellings:
            text = text.replace(spelling, SECRET)
        return text

    def data(self, value: Any) -> Any:
        """Plain data without any of them."""
        return map_texts(value, self.without) if self._spellings else value

    def json(self, text: str) -> str:
        """JSON text, whose letters may be escaped, without any of them."""
        text = self.without(text)
        if "\\" not in text or not self._spellings:
            return text
        try:
            data: Any = json.loads(text)
        except (ValueError, RecursionError):
            return text
        bare = self.data(data)
        return text if bare == data else json.dumps(bare, ensure_ascii=False)

    def stream(self, on_text: Callable[[str], None]) -> tuple[Callable[[str], None], Callable[[], None]]:
        """A listener that forwards text without the secrets, and a function that forwards the rest at the
        end: an end of the text that may be the beginning of a key is held back until that is decided."""
        held = ""

        def hear(piece: str) -> None:
            nonlocal held
            text = self.without(held + piece)
            held = self._begun(text)
            if passed := text[: len(text) - len(held)]:
                on_text(passed)

        def end() -> None:
            nonlocal held
            if held:
                on_text(held)
            held = ""

        return (hear, end) if self._spellings else (on_text, end)

    def _begun(self, text: str) -> str:
        """The longest end of a text that may be the beginning of a secret."""
        longest = len(self._spellings[0]) - 1
        for start in range(max(0, len(text) - longest), len(text)):
            if text[start] in self._begins:
                end = text[start:]
                if any(spelling.startswith(end) for spelling in self._spellings):
                    return end
        return ""


def _spellings(secret: str) -> tuple[str, ...]:
    import html  # here: most commands send nothing

    data, escaped = secret.encode(errors="surrogatepass"), quote(secret, safe="", errors="replace")
    lower = re.sub(r"%..", lambda match: match[0].lower(), escaped)
    found = {secret, escaped, lower, quote(secret, errors="replace"), quote_plus(secret, errors="replace")}
    found |= {json.dumps(secret)[1:-1], html.escape(secret), data.hex(), data.hex().upper()}
    for shift in range(3):  # its offset in the three bytes that four letters of base64 encode
        coded = base64.b64encode(bytes(shift) + data).decode()
        whole = coded[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
        found |= {whole, whole.replace("+", "-").replace("/", "_")}
    return tuple(found)


SENT = Echoes()  # of this process
