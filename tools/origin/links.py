"""Finds the links inside a text: addresses of web pages, mail addresses, hosts, account numbers and paths.

It finds what a mail program or a browser would make a link of, also where the letters are foreign or escaped.
It must not know where a link comes from, and it decides nothing. Names in code (``os.path``, ``main.py``) are
no hosts, and dates, amounts and numbers of houses no accounts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

LinkKind = Literal["url", "mail", "host", "account", "path"]


@dataclass(frozen=True)
class Link:
    """A link as it stands in a text."""

    kind: LinkKind
    text: str


_DOT = r"[.．。｡]"  # browsers read each as a dot
_END = r"""\s<>"“”„«»`"""
_LABEL = r"[\w%-]"
_HOST = rf"{_LABEL}+(?:{_DOT}{_LABEL}+)+"
_ADDRESS = rf"(?:{_HOST}|localhost|\[[0-9A-Fa-f:.]{{2,}}\])"
_LINK = re.compile(
    rf"""
      (?P<url>  (?<![A-Za-z0-9+.-]) [A-Za-z][A-Za-z0-9+.-]{{1,20}}:[/\\]{{2}}[^{_END}]+
              | (?<![\w/\\:.~-])[/\\]{{2}}(?={_HOST})[^{_END}]+
              | (?<![\w+.-])(?:javascript:|data:\w+/|tel:|sms:|file:/|sip:|xmpp:|bitcoin:)(?=\S)[^{_END}]+ )
    | (?P<mail> [^\s<>"“”„«»`(),;:@\[\]{{}}|\\]+[@＠]{_ADDRESS} )
    | (?P<path> (?<![\w.~/\\-])(?:~|\.\.?)?/[^\s"'“”`<>|,;()\[\]{{}}]*[^\s"'“”`<>|,;()\[\]{{}}.:!?]
              | (?<![\w/\\])[A-Za-z]:\\[^\s"'“”`<>|,;]+
              | (?<![\w/\\])\\\\[\w.-]+\\[^\s"'“”`<>|,;]+ )
    | (?P<account> (?<![\w.-])(?:
                (?i:[a-z]{{2}}[0-9]{{2}}(?:[ ][a-z0-9]{{4}}){{2,7}}(?:[ ][a-z0-9]{{1,3}})?)
              | (?i:[a-z]{{2}}[0-9]{{2}}[a-z0-9]{{10,30}})
              | [0-9]{{4}}(?:[ -][0-9]{{4}}){{3}} | [0-9]{{12,19}}
              | (?i:0x[0-9a-f]{{40}}) | (?i:bc1[a-z0-9]{{20,70}})
                )(?![\w-]|\.[0-9]) )
    | (?P<host> (?<![\w@.%-])(?:\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]+\]|localhost(?=[:/])|{_HOST})
                (?::[0-9]{{1,5}}(?![0-9]))?(?:[/?\#][^{_END}]*)? )
    """,
    re.VERBOSE,
)
_IP = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_AFTER_HOST = re.compile("[:/?#]")
_LIKELY = re.compile(r"[@＠/\\.．。｡]|[0-9]{4}|:\S")  # without one of these there is no link
_BRACKETS = {")": "(", "]": "[", "}": "{"}

# The names of the highest level that mail programs make a link of; others stand in code: os.path, list.append.
_TOP = """
    com net org edu gov mil int biz info pro aero asia coop museum xxx app dev cloud online website shop xyz icu vip
    agency ltd inc llc io onion arpa example invalid internal cyou sbs cfd рф укр бел срб рус онлайн сайт 中国 中國
    公司 网络 香港 台湾 한국
"""
# These stand in code too, so that they are a host only with a path or a port behind them: ``evil.page/x``.
_WORDS = """
    bank blog cash center chat click club company credit date design digital download email finance fund group help
    home host ink lan link live local localhost mail media mobi money monster mov name network news page party post
    press quest red rest review services site solutions space store stream studio support systems team tech test today
    top trade travel wiki win work works world zip zone
"""
TOP_LEVEL: Final = frozenset(_TOP.split())
_IN_CODE_TOO = frozenset(_WORDS.split())
# Countries, and names of files and of code that have the same letters.
_FILES = frozenset("py md rs sh pl pm ps cc so ml mk st la ts js hs hy el go cs vb am do in is id if or to at py".split())


def links(text: str) -> Iterator[Link]:
    """The links inside a text, in order."""
    for kind, start, end in spans(text):
        yield Link(kind, text[start:end])


def spans(text: str) -> Iterator[tuple[LinkKind, int, int]]:
    """Where links stand in a text: kind, start and end."""
    if not _LIKELY.search(text):
        return
    at = 0
    while found := _LINK.search(text, at):
        kind: LinkKind = found.lastgroup  # type: ignore[assignment]
        start, end = found.span()
        at = end
        if kind in ("url", "host", "path"):
            end = start + len(_without_punctuation(found[0]))
        if kind == "host" and not is_host(text[start:end]):
            continue
        if kind == "path" and end - start < 2:
            continue
        yield kind, start, end


def is_host(text: str) -> bool:
    """Whether ``text`` is the name of a host and not of a file or of something in code. A name with a path
    behind it counts by its name."""
    if text.startswith("["):
        return text.count(":") > 1
    cut = _AFTER_HOST.search(text)
    name, rest = (text[: cut.start()], text[cut.start() :]) if cut else (text, "")
    plain = unicodedata.normalize("NFKC", name).replace("。", ".").rstrip(".").lower()
    labels = plain.split(".")
    if _IP.fullmatch(plain):
        return all(int(label) < 256 for label in labels)
    last = labels[-1]
    if plain == "localhost" or labels[0] == "www":
        return True
    if not all(labels) or last.isdigit():
        return False
    if last.startswith("xn--") or last in TOP_LEVEL:
        return True
    if last in _IN_CODE_TOO or last in _FILES:
        return rest != "" and len(rest) > 1
    return len(last) == 2 and last.isascii() and last.isalpha()


def _without_punctuation(text: str) -> str:
    """The link without what ends the sentence or closes the bracket around it."""
    while text:
        last = text[-1]
        closes = last in _BRACKETS and text.count(last) > text.count(_BRACKETS[last])
        if not closes and last not in ".,;:!?'*_~…。，、’":
            return text
        text = text[:-1]
    return text
