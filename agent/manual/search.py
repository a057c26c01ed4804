"""Searches the manual for a question in the reader's own words and ranks the sections.

A section scores for each word by where the word is (headline, entry of a list or table, page, text) and by
how rare it is in the manual. A synonym counts a little less than the word itself.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from quoth.agent.manual.pages import TOPICS, Page, PageSection
from quoth.tools.lazy_dataclass import dataclass

# Words that say nothing about the subject of a question.
STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a about after all an and any are as at be been by can could did do does doing for from get give
        given has have how i if in into is it its just like make mean me must my need of off on one
        or our out page please put quoth say see should so some tell that the their them then there
        these they thing this to use used using want was we were what when where which who why will
        with without would you your
        """,
    )
)
# What people say, and the manual's words for it.
SYNONYMS: Mapping[str, str] = dict(
    entry.split(": ")
    for entry in re.split(
        r";\s+",
        """abort: stop cancel; account: key; agents: sub-agent; allow: approve policy; ban: deny policy;
        block: deny; bot: gateway bridge chat; bug: doctor error; cheap: budget cost; computer: machine;
        computers: machine; config: configuration settings; configure: configuration settings;
        confirm: approve request; consent: approve request; container: boundary; continue: resume;
        conversation: session; cost: budget spend; crash: resume kill stopped; credentials: key;
        delete: forget remove; denied: deny audit explain; download: fetch; edit: file write-file;
        emails: tag channel; erase: forget remove; exclude: deny; failed: error; forbid: deny policy;
        function: tool cognitive_tool; history: session log; images: --file; internet: network local;
        isolated: boundary sandbox; jail: boundary sandbox; kill: stop; leaves: sent network;
        limit: budget quota; llm: model; log: trace audit; login: key models; mcp: belt;
        money: budget cost; offline: local network; old: earlier resume; openai: models; parallel: at once;
        password: key secret; permission: approve approvals policy; permit: approve policy;
        prevent: deny policy; price: cost budget; privacy: secret security; prohibit: deny policy;
        prompt: instructions; protect: deny policy; provider: models; refuse: deny; refused: deny audit;
        reject: deny; remember: memory; remote: machine worker; restart: resume stopped; restore: undo;
        revert: undo; rollback: undo; rule: policy; safe: security boundary; sandboxed: boundary confines;
        schedule: remind reminder; server: worker; spend: cost budget; stop: deny budget interrupt;
        telegram: gateway bridge chat; token: tokens key; touch: deny write-file;
        touching: deny write-file; undelete: undo; unit: tests; website: fetch web; workflow: plan flight""",
    )
)
# Phrases of which the single words would mislead.
PHRASES = {
    r"\b(?:take|put|bring|roll|go|get)s? (?:it |this |that |them )?back\b": "undo",
    r"\bapi[- ]?keys?\b": "keys",
    r"\b(?:at once|in parallel|at the same time)\b": "parallel",
    r"\b(?:no|without(?: the| an?)?) (?:internet|network)\b": "offline",
    r"\b(?:pick|picks) up\b": "resume",
    r"\bmust not\b|\bnever\b|\bdon'?t\b|\bdo not\b": "forbid",
}
_WORD = re.compile(r"[a-z0-9_.:-]*[a-z0-9_]")
_WEIGHTS = (6.0, 4.0, 3.0, 1.0)  # of a word in the headline, an entry, the page's title or topic, the text
_SYNONYM = 0.6  # of what the word itself would count
# Pages that seldom answer, and what they count.
_SELDOM = {"house": 0.4, **dict.fromkeys(TOPICS["Coming from"], 0.4)}
_CLEAR = 1.4  # the first section is the answer if it scores this factor more than the second


@dataclass(frozen=True)
class Found:
    """The sections that fit, the best first; the words that no page has; whether the first is the answer."""

    sections: list[PageSection]
    unknown: list[str]
    clear: bool = False


def asked(words: Iterable[str]) -> list[str]:
    """The words of a question that say what it is about."""
    return list(dict.fromkeys(word for word in _words(" ".join(words)) if word not in STOP))


def _words(text: str) -> list[str]:
    """The words of a text; one with marks, such as ``scripted:FILE``, also as its parts."""
    text = text.lower()
    for phrase, meant in PHRASES.items():
        text = re.sub(phrase, meant, text)
    found = _WORD.findall(text)
    return found + [part for word in found if ":" in word for part in word.split(":") if part]


def ranked(words: Iterable[str], pages: Iterable[Page]) -> Found:
    """The sections of these pages that fit a question best."""
    texts = [fields_of(page, section) for page in pages for section in page.sections]
    sections = [section for page in pages for section in page.sections]
    seen = Counter(stem for fields in texts for stem in set().union(*fields))
    rare = {stem: math.log(1 + len(texts) / count) for stem, count in seen.items()}
    meant = {word: _meanings(word) for word in asked(words)}
    unknown = [word for word, stems in meant.items() if not seen.keys() & stems.keys()]
    known = {word: stems for word, stems in meant.items() if word not in unknown}

    def score(fields: tuple[Counter[str], ...]) -> float:
        each = [
            max(
                weight
                * rare.get(stem, 0)
                * sum(
                    part * min(1 + math.log(found[stem]), 2)
                    for part, found in zip(_WEIGHTS, fields, strict=True)
                    if found[stem]
                )
                for stem, weight in stems.items()
            )
            for stems in known.values()
        ]
        return sum(each) * sum(one > 0 for one in each) / max(len(known), 1)

    part = [_SELDOM.get(section.topic, 1.0) for section in sections]
    scores = sorted(((part[at] * score(fields), -at) for at, fields in enumerate(texts)), reverse=True)
    best = [(one, sections[-at]) for one, at in scores if one > 0]
    clear = len(best) == 1 or (len(best) > 1 and best[0][0] > _CLEAR * best[1][0])
    return Found([section for one, section in best if one > best[0][0] / 4], unknown, clear)


def line_of(section: PageSection, words: Iterable[str]) -> str:
    """The sentence or line of a section that has most of the words or synonyms; prose before examples."""
    stems = {stem: weight for word in asked(words) for stem, weight in _meanings(word).items()}

    def worth(text: str, part: float) -> float:
        return part * sum(stems.get(stem, 0) for stem in set(map(_stem, _words(text))))

    prose = re.sub(r"(?ms)^#\+begin_.*?^#\+end_\w+$", "", section.text)
    prose = re.sub(r"(?m)^(?:#\+|\|-|\*+ ).*$", "", prose)
    sentences = [
        " ".join(sentence.split())
        for paragraph in re.split(r"\n\s*\n|\n(?=[|-])", prose)
        for sentence in re.split(r"(?<=[.;])\s", paragraph)
        if sentence.strip()
    ]
    lines = [line.strip() for line in section.text.splitlines() if not line.startswith(("#+", "*", "|-"))]
    told = [*((worth(one, 1), one) for one in sentences), *((worth(one, 0.5), one) for one in lines)]
    return max(told, key=lambda one: one[0], default=(0, ""))[1]


def _meanings(word: str) -> dict[str, float]:
    """The stems of a word and of its synonyms, each with what it counts."""
    found = {_stem(one): _SYNONYM for one in SYNONYMS.get(word, "").split()}
    return {**found, _stem(word): 1.0}


@cache
def fields_of(page: Page, section: PageSection) -> tuple[Counter[str], ...]:
    """The stems of a section by where they are, as _WEIGHTS counts them."""
    entries, about = " ".join(section.entries), f"{page.topic} {page.title} {page.about}"
    texts = (section.title or page.title, entries, about, section.text)
    return tuple(Counter(map(_stem, _words(text))) for text in texts)


@cache
def _stem(word: str) -> str:
    """The word without an ending of English, so that ``approved`` finds ``approve`` and ``approvals``."""
    for ending in (
        "ations",
        "ation",
        "als",
        "al",
        "ings",
        "ing",
        "ies",
        "ied",
        "ers",
        "er",
        "ed",
        "es",
        "s",
        "e",
        "y",
    ):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            return word.removesuffix(ending)
    return word
