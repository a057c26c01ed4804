"""Makes deceptive texts visible: characters that are invisible, reorder text, or look like others are
escaped.

Every text that is shown to a person for a decision goes through here. Only the displayed text changes, never
the call.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from quoth.tools.text import escape, listed

# Controls, formats, private and unassigned characters, surrogates; separators except the plain space;
# characters without a glyph; a blank that counts as a symbol; marks without a letter, or too many on one.
_UNSEEN = (
    r"[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800--[\x20]]"
    r"|(?<![\p{L}\p{M}\p{N}])\p{M}|(?<=\p{M}{4})\p{M}"
)
# A word, or an escape of a printed text, whose letters belong to no word.
_WORD = r"\\(?:x\p{AHex}{2}|u\p{AHex}{4}|U\p{AHex}{8}|.)|([\p{L}\p{M}\p{N}_]+)"
SCRIPTS = ("Latin", "Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic", "Lisu", "Georgian")


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with an escape, such as ``\u202e``, for every invisible or misleading character, and for
    letters of another script in a word that also has Latin letters. With ``lines``, line feeds and tabs
    stay; the caller must then indent continuation lines."""
    plain = text.replace("\n", "").replace("\t", "") if lines else text
    if plain.isascii() and plain.isprintable():
        return text
    unseen, word, _ = _patterns()
    kept = "\n\t" if lines else ""
    text = word.sub(lambda found: _foreign_letters(found[0]) if found[1] else found[0], text)
    return str(unseen.sub(lambda found: found[0] if found[0] in kept else _escape(found[0]), text))


def mixed(text: str) -> str:
    r"""A sentence about each word that mixes scripts: ``\u0430pple mixes Cyrillic and Latin letters.``"""
    if text.isascii():
        return ""
    _, word, scripts = _patterns()
    said = []
    for found in word.finditer(text):
        names = sorted(name for name, letters in scripts.items() if letters.search(found[1] or ""))
        if len(names) > 1 and "Latin" in names:
            said.append(f"{visible(found[0])} mixes {listed(names)} letters.")
    return " ".join(dict.fromkeys(said))


def _foreign_letters(word: str) -> str:
    scripts = _patterns()[2]
    if word.isascii() or not scripts["Latin"].search(word):
        return word
    others = [letters for name, letters in scripts.items() if name != "Latin"]
    return "".join(_escape(char) if any(other.match(char) for other in others) else char for char in word)


def _escape(char: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or escape(char)


@lru_cache(1)
def _patterns() -> tuple[Any, Any, dict[str, Any]]:
    import regex  # here: most texts are plain, and the import takes longer than checking them

    scripts = {name: regex.compile(rf"\p{{Script={name}}}") for name in SCRIPTS}
    return regex.compile(_UNSEEN, regex.V1), regex.compile(_WORD, regex.DOTALL), scripts
