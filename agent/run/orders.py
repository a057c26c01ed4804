"""Which files the words of a task clearly order to change or to make, for the coach of small models.

A wrong change is worse than none. What is not an order in the person's own words forces nothing: a question,
a noun, quoted and pasted text, an order about the answer. The model may still do it. English words alone are
known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

PATH = r"(?<![\w./@\\-])(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)*\.[^\W\d_]\w{0,5}(?![\w/])"
FIGURES = r"(?:amounts|column|costs|everything|figures|hours|numbers|prices|quantities|totals|values)"
_PARTS = r"(?:[;,:]\s|(?<=[.?!])\s| (?:and|then) )"
POLITE = r"(?:could|can|would|will) you"
_ORDER = (  # an order begins a part of the task
    rf"^(?:[-*] |\d+[.)] )?(?:(?:also|and|just|kindly|now|please|pls|so|then|{POLITE}|"
    r"(?:don't forget|remember|i'd like|i would like|i want) to|"
    r"i(?:'d| would) like you to|i (?:need|want) you to) ){0,9}"
    r"(?:(?:in|on|at) \S+ )?"
)
# The same verbs in another meaning: "add the numbers in", "set up", "put it in one sentence", "Mark said".
_NO_CHANGE = (
    rf"add (?:\S+ ){{0,3}}up\b|add (?:\w+ ){{0,3}}?{FIGURES} (?:from|in|of|together)\b(?!.*\bto\b)|"
    r"\w+ (?:aside|me|of|said|says|theory|up|us)\b(?!\.\w)|(?:extend|mark) my\b(?!.* in )|"
    r"(?:in|de)crease in\b|"
    r"turn (?:to\b|\S+ into\b)|switch statement|tick tock|(?:set|update) (?:about|by|on)\b|"
    r"(?:change|correct|edit|fix|update) "
    r"(?:history|log|requests?|spelling|statements?|suggestions?)\b(?! in |\.\w)"
)
_NO_ORDER = (
    r"put\b.* in(?:to)? (?:\w+ ){0,2}(?:answer|context|paragraphs?|reply|sentences?|words)\b|"
    r"make (?:sure|up)\b|\w+ (?:no|none|nothing)\b(?! (?:to|with)\b)|.*\byour (?:answer|reply|response)\b|"
    r"\w+ (?:(?!all|any|each|every|that|the|wh)\w+ ){0,2}(?:are|is|was|were)\b"
)
_MAKES = rf"{_ORDER}(?!{_NO_ORDER})(?:create|make|put|save|store|write)(?![\w:-])"
_CHANGES = (
    rf"{_ORDER}(?!{_NO_CHANGE}|{_NO_ORDER})"
    r"(?:add|adjust|append|bump|change|correct|decrease|disable|edit|enable|extend|fix|increase|insert|lower|"
    r"mark|raise|repair|replace|set|shorten|switch|tick|turn|update|put\b.* (?:at|in|into|on|to|under)|"
    r"(?:delete|remove|rename)\b.* (?:from|in|of)|rename (?:all|it|them)|give (?:each|it|them))(?![\w:-])"
)
_ADDS = r"\b(?:add|append|insert|put)\b"
_AT_END = rf"{_ORDER}(?:add|append|put)\b.*\b(?:end|bottom|last line)\b"
# New lines of a list, and nothing within a line, or for something in the file.
_LINE = (
    rf"{_ORDER}(?:add|append|put)\b"
    r"(?:(?! (?:column|each|every|field|in|number|on|parameter|row|to) ).)* (?:in|on|to) "
    r"(?:the |my |our )?(?:file |list |note )?$"
)
_LISTS = (".csv", ".log", ".md", ".org", ".tsv", ".txt")
_PLACE = r"\b(?:above|after|before|beginning|below|between|first|next to|section|top|under)\b|\[\w+\]"
_ELSEWHERE = r"\b(?:remind|reminder|memory|remember|calendar)\b"  # a change of no file
_CHANGE = r"(?:add|alter|change|delete|edit|fix|modify|overwrite|rename|replace|save|set|touch|update|write)"
_FORBIDS = (
    rf"(?:\b(?:never|(?:can|could|do|does|may|must|shall|should|to) not|cannot)|n't(?! forget))"
    rf"(?:,? (?!and|but|just|please|so|then)\w+){{0,5}},? {_CHANGE}\b|"
    r"\b(?:without|avoid) (?:changing|editing|fixing|saving|touching|writing)\b|"
    r"\b(?:add|change|delete|edit|remove|write) nothing\b(?! (?:else|more|other))|"
    r"\bno changes? (?:to|in)\b|\bnothing (?:is|be|gets) (?:\w+ed|written)\b|\bwould (?:be|become|happen)\b|"
    r"\b(?:do not|don['’]t)(?! (?:explain|forget|say|tell))\b|"
    r"\b(?:never mind|forget it|cancel|undo|refrain|not (?:now|yet)|no edits?)\b|"
    r"\b(?:if|unless|until|(?:after|once|when) (?:i|you|we)|before you|ask (?:before|me)|imagine|pretend)\b|"
    r"(?:^|[.!?;] )(?:later|tomorrow)\b|"
    r"\b(?:explain|know|see|show me|tell me) how\b(?! (?:many|much))|"
    r"\b(?:dry run|plan only|suppose|keep (?:it|them|\S+\.\w+) as)\b|"
    r"\bleave (?!all|everything|the)\S+(?: \S+)? alone\b|"
    r"\bonly (?:ask|look|show|tell)\w*\b|"
    r"\b(?:did|does|is|was|would) (?:he|it|she|that|they|this) "
    r"(?:a good|allowed|correct|do|good|ok|okay|right|safe|true|wise)\b"
)
_BUT = (  # it forbids more than the task
    r"\b(?:(?:do not|don't|never) \w+|without \w+ing) (?:any|anything|the|what)\b"
    r"[^.;]{0,100}\b(?:else|others?|remaining|rest)\b"
)
_UNSURE = r"\b(?:anything|at all|ever|or)\b"  # a polite question about what is possible
_VALUE = r"\b(?:to|with)\b|[\"“'=]"
# Before a colon and an order; other words announce a heading, a speaker or a text.
_ANNOUNCES = (
    r"(?:.* )?(?:please|step \d+|task|todo|(?:do|make) (?:this|these|the following)(?: changes?)?)|"
    r"(?:in|on|at) \S+"
)
# Another person's words follow.
_SAYS = r"\b(?:claims?|goes|proposed?s?|reads|recommend(?:ed|s)|said|says?|suggest(?:ed|s)|writes|wrote)\b"
_GIVEN = (
    r"\b(?:describe|explain|ignore|paraphrase|proofread|rephrase|review|rewrite|summari[sz]e|translate)\b|"
    r"^(?:please )?(?:count|draft|give me|list|print|show)\b"
)
_ANSWER = r"\b(?:answer|conclusion|joke|opinion|reply|style|summary|tone|your)\b"
_ASKS = r"(?:are|count|does?|explain|how|is|list|show|tell|what|when|where|which|who|why)\b"


class Orders(NamedTuple):
    """What a task orders: the existing files to change, those to make, whether lines are to be added at the
    end of the first; and whether anything is ordered at all."""

    changed: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    adds: bool = False
    any: bool = False


class _TaskPart(NamedTuple):
    """A part of a task: its text, the same in small letters, the files in it with their places, and whether
    it is an order, and clearly one."""

    text: str
    low: str
    files: dict[str, int]
    orders: bool
    changes: bool
    makes: bool

    def before(self, file: str) -> str:
        """The text before a file, in small letters; not more of it than matters."""
        at = self.files[file]
        return self.low[max(0, at - 300) : at]


def orders_in(task: str) -> Orders:
    """The clear orders in a task."""
    low, parts = task.lower(), list(_ordered(task))
    ordered = any(part.orders for part in parts)
    if re.search(_FORBIDS, re.sub(_BUT, "", _own_words(task, quoted=0).lower())):
        return Orders(any=ordered)
    changed = () if re.search(_ELSEWHERE, low) else _changed(parts)
    adds = bool(changed) and not re.search(_PLACE, low) and any(_adds_lines(part) for part in parts)
    return Orders(changed, _made(parts), adds, ordered)


def files_in(text: str) -> list[str]:
    """The paths of files in a text, in order."""
    return list(dict.fromkeys(re.findall(PATH, text)))


def _ordered(task: str) -> Iterator[_TaskPart]:
    """The parts of a task, and whether each is an order."""
    theirs = announced = False
    words = re.split(f"({_PARTS})", _own_words(task))
    asks = any(map(_is_question, words[::2]))  # then only an order with a new value is clear
    for at in range(0, len(words), 2):
        text, low, end = words[at], words[at].lower(), "".join(words[at + 1 : at + 2])
        after = "".join(words[at + 2 : at + 3]).lower()
        unclear = announced or after.startswith("or ") or (end.startswith(":") and re.match(_ASKS, after))
        own = not theirs and not unclear and not _is_question(text)
        changes, makes = own and bool(re.search(_CHANGES, low)), own and bool(re.search(_MAKES, low))
        files: dict[str, int] = {}
        for found in re.finditer(PATH, text):
            files.setdefault(found[0], found.start())
        clear = not asks or re.search(_VALUE, low) is not None
        yield _TaskPart(text, low, files, changes or makes, changes and clear, makes)
        given = end.startswith(":") and re.search(_GIVEN, low)
        announced = end.startswith(":") and re.fullmatch(_ANNOUNCES, low.strip()) is None
        theirs = theirs or bool(given or re.search(_SAYS, low))


def _own_words(task: str, quoted: int = 1) -> str:
    """A task without blocks of code, quoted lines, and quotations of more words than ``quoted``."""
    task = re.sub(r"```.*?(?:```|\Z)|^>.*$", "", task, flags=re.DOTALL | re.MULTILINE)
    quotations = r"[\"“«]([^\"”»\n]{0,600})[\"”»]|(?<!\w)'([^'\n]{0,600})'(?!\w)"

    def kept(found: re.Match[str]) -> str:
        return found[0] if len((found[1] or found[2] or "").split()) <= quoted else '""'

    return re.sub(quotations, kept, task)


def _is_question(part: str) -> bool:
    """Whether a part of a task is a question, and not a polite order."""
    low = part.rstrip().lower()
    if not low.endswith("?"):
        return False
    polite = re.match(rf"(?:\w+,? )*?{POLITE} ", low)
    if (
        not polite
        or re.search(_UNSURE, low[polite.end() :])
        or ("would" in polite[0] and "please" not in low)
    ):
        return True
    return re.fullmatch(rf"\w+ {PATH}\?", part.rstrip()[polite.end() :]) is not None


def _changed(parts: Iterable[_TaskPart]) -> tuple[str, ...]:
    """The only file in a part with an order to change, or the one "in" which a part before it was; the last
    one to which something is added; then also one before "to" and a value; else the only one of the task."""
    found: list[str] = []
    begun, before, alone = False, "", True  # alone: the only file of the task may be meant
    every = dict[str, None]()
    for part in parts:
        here, adds = list(part.files), re.search(_ADDS, part.low)
        every.update(dict.fromkeys(here))
        alone = alone and not (here and part.text.rstrip().endswith("?") and not part.changes)
        if part.changes and not adds:  # "to" is before a value
            here = [file for file in here if not part.before(file).endswith(" to ")]
        alone = alone and not re.search(_GIVEN, part.low)
        alone = alone and not (part.changes and not part.files and re.search(_ANSWER, part.low))
        begun = begun or part.changes
        if part.changes and not here and before:
            found.append(before)
        elif part.changes and (len(here) == 1 or (here and adds)):
            found.append(here[-1])
        elif begun and len(here) == 1 and part.text.startswith(f"{here[0]} to ", part.files[here[0]]):
            found.append(here[0])
        before = here[-1] if here and not part.changes and re.match("(?:in|on|at) ", part.low) else ""
    if begun and not found and len(every) == 1 and alone:
        return tuple(every)
    return tuple(dict.fromkeys(found))


def _made(parts: Iterable[_TaskPart]) -> tuple[str, ...]:
    """The files that a task orders to make, or to write something into."""
    found: list[str] = []
    begun = False
    named = r"(?: (?:me|us|the|an?|new|small|short|text|file|named|called)){0,9}"
    first = rf"{_ORDER}(?:create|make)(?: (?!for|from|in|of|that|to|with)\w+){{0,5}} $"
    for part in parts:
        begun = begun or part.makes
        places = r"\b(?:into|to|named|called)" if part.makes else r"\binto"
        for file in part.files if begun else ():
            before = part.before(file)
            if re.search(f"{places}{named} $", before) or (part.makes and re.search(first, before)):
                found.append(file)
    return tuple(dict.fromkeys(found))


def _adds_lines(part: _TaskPart) -> bool:
    """Whether it orders to add lines at the end of a file."""
    if re.search(_AT_END, part.low):
        return True
    file = list(part.files)[-1] if part.files else ""
    return part.changes and file.endswith(_LISTS) and re.search(_LINE, part.before(file)) is not None
