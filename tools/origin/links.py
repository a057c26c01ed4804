"""Finds the links inside a text: addresses of web pages, mail addresses, hosts, account numbers and paths.

It finds everything that a mail program or a browser would make a link, also with foreign or escaped letters.
Names in code (``os.path``, ``main.py``) are not hosts; dates, amounts and house numbers are not accounts."""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, Literal
from urllib.parse import unquote

LinkKind = Literal["url", "mail", "host", "account", "path"]


@dataclass(frozen=True)
class Link:
    """A link as written in a text."""

    kind: LinkKind
    text: str


_DOT = r"[.．。｡]"  # browsers read each as a dot
_END = r"""\s<>"“”„«»`"""
_CLOSE = r"""\s"'“”`<>|,;"""
_LOCAL = r"""[^\s<>"“”„«»`(),;:@＠\[\]{}|\\]"""  # a character before the @ of a mail address
_LABEL = r"[\w%-]"
_HOST = rf"{_LABEL}+(?:{_DOT}{_LABEL}+)+"
_LINK = re.compile(
    rf"""
      (?P<url>
          (?i:https?|wss?|ftp):[/\\]*(?=[\w%\[])[^{_END}]+
        | (?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{{1,20}}:[/\\]{{2}}[^{_END}]+
        | (?<![\w/\\:.~-])[/\\]{{2}}(?={_HOST})[^{_END}]+
        | (?<=["'(\[=<])//(?=[\w%])[^{_END}]+
        | (?<![\w+.-])(?i:(?:java|vb)script:|data:\w+/|tel:|sms:|file:/|sip:|xmpp:|bitcoin:)(?=\S)[^{_END}]+
      )
    | (?P<mail> (?<!{_LOCAL}){_LOCAL}+[@＠](?:{_HOST}|localhost|\[[0-9A-Fa-f:.]{{2,}}\]) )
    | (?P<path>
          (?<![\w.~/\\-])(?:~|\.\.?)?/(?:(?!(?i:(?:https?|wss?|ftp):[/\\]|mailto:))[^{_CLOSE}()\[\]{{}}])*(?<![.:!?])
        | (?<![\w/\\])(?:[A-Za-z]:\\|\\\\[\w.-]+\\)[^{_CLOSE}]+
      )
    | (?P<host>
          (?<![\w.%-])(?:\[[0-9A-Fa-f]*:[0-9A-Fa-f:.]+\]|localhost(?=:[0-9]|/)|{_HOST})
          (?::[0-9]{{1,5}}(?![0-9]))?(?:[/?\#][^{_END}]*)?
      )
    """,
    re.VERBOSE,
)
_ANY_HOST = re.compile(
    rf"""
      (?<![\w.%/\\-]) (?<![\w][@＠])
      {_LABEL}+(?:{_DOT}{_LABEL}+)*{_DOT}(?:[^\W\d_]{{2,63}}|xn--[\w-]+)
      (?::[0-9]{{1,5}}(?!\w) | (?::[0-9]{{1,5}})?(?:/(?!/)|\?)[^{_END}]+)
    | (?<=[@＠]){_LABEL}+(?:{_DOT}{_LABEL}+)*{_DOT}[^\W\d_]{{2,63}}
    """,
    re.VERBOSE,
)
_SLASHES = re.compile(rf"[/\\]{{2}}({_HOST})")  # also inside a path: .//evil.example
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]|(?<=\\w)[\\t\\r\\n]+(?=\\w*:)")
_ACCOUNT = re.compile(
    r"""
    (?<![\w.-])(?:
        [a-z]{2}[0-9]{2}(?:[ ][a-z0-9]{4}){2,7}(?:[ ][a-z0-9]{1,3})?
      | [a-z]{2}[0-9]{2}[a-z0-9]{10,30}
      | [0-9]{4}(?:[ -][0-9]{4}){3} | [0-9]{12,19}
      | 0x[0-9a-f]{40} | bc1[a-z0-9]{20,70}
    )(?![\w-]|\.[0-9])
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_ENTITY = re.compile(r"&(?:gt|lt|quot|apos|nbsp|\#\w+);?.*\Z", re.DOTALL)
_SIGN = re.compile(r"[@＠/\\．。｡]|\.\w|:\S")  # a text without one of these can contain only account numbers
_BLANK = re.compile(r"\s")
_IP = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_BEFORE_HOST = re.compile(r"\A(?:(?i:https?|wss?|ftp):|[A-Za-z][\w+.-]*:(?=[/\\]))?[/\\]*")
_AFTER_HOST = re.compile("[:/?#]")
_PATH = re.compile(r"[/\\?#]")  # browsers read a backslash as a slash
_DIGITS = re.compile("[0-9]{4}|bc1", re.IGNORECASE)
_BRACKETS = {")": "(", "]": "[", "}": "{"}

# Top-level domains that mail programs make links of. Others are common in code: os.path, list.append.
_TOP = """
    com net org edu gov mil biz info pro aero asia coop museum xxx app dev cloud online website shop xyz
    icu vip agency ltd inc llc io onion arpa example invalid internal cyou sbs cfd
    рф укр бел срб рус онлайн сайт 中国 中國 公司 网络 香港 台湾 한국
"""
# These are common in code, too. They are a host only if a path or a port follows: ``evil.page/x``.
_WORDS = """
    bank blog cash center chat click club company credit date design digital download email finance fund group
    help home host ink int
    lan link live local localhost mail media mobi money monster mov name network news page
    party post press quest red rest review services site solutions space store stream studio support systems
    team tech test today top trade travel wiki win work works world zip zone
"""
_COUNTRIES = """
    ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv
    bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es
    et eu fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu
    id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt
    lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no
    np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si
    sj sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk
    us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw
"""
TOP_LEVEL: Final = frozenset(_TOP.split())
_IN_CODE_TOO = frozenset(_WORDS.split())
_OF_COUNTRIES = frozenset(_COUNTRIES.split())
# Country codes that are also endings of file names or names in code.
_LIKE_FILES = "py js md rs sh pl pm ps cc so ml mk st la hs cs vb am do in is id to at"
_FILES = frozenset(_LIKE_FILES.split())
_OBJECTS = ("self", "cls", "this")  # self.bg is an attribute


def links(text: str) -> Iterator[Link]:
    """The links inside a text, in order."""
    for kind, start, end in spans(text):
        yield Link(kind, text[start:end])


def rendered(text: str) -> Iterator[Link]:
    """The links inside a text that a mail program or a browser shows: in the text as it is, with entities and
    escapes decoded, and each host name followed by a port or a path. No duplicates."""
    found = list(links(text))
    taken = {host_of(link.text) for link in found if link.kind != "path"}
    plain = _INVISIBLE.sub("", html.unescape(text))
    for version in dict.fromkeys((text, plain, unquote(plain))):
        more = list(links(version)) if version != text else found[:]
        for link in (*more, *_named(version), *_before_at(more)):
            if link.kind != "path" and (host := host_of(link.text)) not in taken:
                taken.add(host)
                found.append(link)
    return iter(found)


def host_of(link: str) -> str:
    """The host that a link leads to; the link itself if it has no recognizable host."""
    bare = _PATH.split(_BEFORE_HOST.sub("", html.unescape(link)))[0].rstrip("@")
    named = unquote(bare.rpartition("@")[2]).rpartition("@")[2]
    return _AFTER_HOST.split(named)[0].rstrip(".").lower() or link


def _before_at(found: Iterable[Link]) -> Iterator[Link]:
    """Host names before the @ of an address: if the part after it is not a host, some programs make only the
    part before it a link."""
    for link in found:
        user, at, _ = _PATH.split(_BEFORE_HOST.sub("", link.text))[0].rpartition("@")
        if at and link.kind == "url" and is_host(user):
            yield Link("host", user)


def _named(text: str) -> Iterator[Link]:
    """Host names recognized by the characters around them, with any last label."""
    for found in _ANY_HOST.finditer(text):
        yield Link("host", _without_punctuation(found[0]))
    for found in _SLASHES.finditer(text):
        if is_host(name := _without_punctuation(found[1])):
            yield Link("host", name)


def spans(text: str) -> Iterator[tuple[LinkKind, int, int]]:
    """The links in a text, in order: kind, start and end."""
    found = list(_with_signs(text))
    taken = [start for _, start, _ in found]
    for account in _ACCOUNT.finditer(text) if _DIGITS.search(text) else ():
        start, end = account.span()
        nearest = bisect_left(taken, end) - 1  # last link that begins before the account ends
        if nearest < 0 or found[nearest][2] <= start:
            found.append(("account", start, end))
    return iter(sorted(found, key=itemgetter(1)))


def _with_signs(text: str) -> Iterator[tuple[LinkKind, int, int]]:
    """The links that contain a dot, a slash or an @. Only the text around such a sign is searched."""
    done = 0
    for sign in _SIGN.finditer(text):
        left = sign.start()
        if left < done:
            continue
        while left > done and not text[left - 1].isspace():
            left -= 1
        blank = _BLANK.search(text, sign.start())
        done = blank.start() if blank else len(text)
        for found in _LINK.finditer(text, left, done):
            kind: LinkKind = found.lastgroup  # type: ignore[assignment]
            start, end = found.span()
            if kind != "mail":
                end = start + len(_without_punctuation(_ENTITY.sub("", found[0].partition("][")[0])))
            if end - start > 1 and (
                kind != "host" or (is_host(text[start:end]) and not _is_called(text, end))
            ):
                yield kind, start, end


def _is_called(text: str, end: int) -> bool:
    """Whether a name is a function call: ``log.info(x)``."""
    return text.startswith("(", end) and text.endswith(".info", 0, end)


def is_host(text: str) -> bool:
    """Whether ``text`` is the name of a host, not of a file or of something in code. A path behind the name
    is ignored."""
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
    if not rest and len(labels) == 2 and labels[0] in _OBJECTS:
        return False
    if last.startswith("xn--") or last in TOP_LEVEL:
        return True
    if last in _IN_CODE_TOO or last in _FILES:
        return len(rest) > 1
    return last in _OF_COUNTRIES


def _without_punctuation(text: str) -> str:
    """The link without the punctuation after it: the end of a sentence or a closing bracket."""
    end = len(text)
    open_more = {close: text.count(opens) - text.count(close) for close, opens in _BRACKETS.items()}
    while end:
        last = text[end - 1]
        if last in _BRACKETS and open_more[last] < 0:
            open_more[last] += 1
        elif last not in ".,;:!?'*_~…。，、’":
            break
        end -= 1
    return text[:end]
