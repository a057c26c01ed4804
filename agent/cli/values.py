"""What the values of options may be; argparse tells a person what these complain of.

Knows texts only; it must not know which option has them.
"""

from __future__ import annotations

import argparse
import re


def a_name(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # a command line may hold bytes that are no text
        raise argparse.ArgumentTypeError(f"UTF-8 text is needed, not {text!a}") from None
    return text


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 is needed, not {text}")
    return int(text)


def seconds(text: str) -> float:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number of seconds is needed, not {text}")
    return float(text)


def dollars(text: str) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?|\.\d{1,9}", text) or not float(text):
        raise argparse.ArgumentTypeError(f"a number of US dollars above 0 is needed, as in 0.25, not {text}")
    return float(text)


def temperature(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 2:
        raise argparse.ArgumentTypeError(f"a number from 0 to 2 is needed, not {text}")
    return found


def key_file(text: str) -> str:
    if not text.startswith("@"):  # it is not repeated: it may be the key
        raise argparse.ArgumentTypeError(
            "a key that is typed can be seen by others; name a file that holds it, @FILE, or type:"
            " quoth models login PROVIDER"
        )
    return text
