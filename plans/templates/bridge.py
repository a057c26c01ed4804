"""A bridge between people and ``quoth chat --gateway stdio``: here the people are at this terminal.

To try it: python my-name.py --model local. To check it without a model: python my-name.py --check Replace
standard input and output by your chat service. Take user and chat from the service, never from a text. Lines
to and from the gateway are JSON; ``quoth help chat`` describes them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


class Gateway:
    """The gateway as a process: it reads a line, and writes lines until the message is answered."""

    def __init__(self, *options: str) -> None:
        quoth = ["quoth"] if shutil.which("quoth") else [sys.executable, "-P", "-m", "quoth"]
        pipe = subprocess.PIPE
        words = [*quoth, "chat", "--gateway", "stdio", *options]
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)  # noqa: S603
        self.number = 0

    def ask(self, user: str, chat: str, text: str) -> list[dict[str, Any]]:
        """The lines that answer a message: replies, follow-ups, errors, and calls that wait for a person."""
        self.number += 1  # an id; use your service's own, so that a message delivered twice is answered once
        assert self.process.stdin
        assert self.process.stdout
        line = {"id": self.number, "user": user, "chat": chat, "text": text}
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        said = []
        for answer in self.process.stdout:
            said.append(json.loads(answer))
            if said[-1]["kind"] in ("reply", "error"):
                break
        return said

    def close(self) -> None:
        """Close its input, and let it finish."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def shown(line: dict[str, Any]) -> str:
    """The text of a line for a person."""
    if line["kind"] == "asked":  # an approver sends {"user": …, "chat": …, "approve": id} or "deny"
        return f"{line['text']} ({line['request']['id']})"
    return str(line["text"])


def check() -> None:
    """Send one message, with replies from a file, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUOTH_STATE"] = folder  # the folder of its store
        Path(folder, "replies.txt").write_text("Hello, ann.\n")
        gateway = Gateway("--workspace", folder, "--model", f"scripted:{folder}/replies.txt")
        lines = gateway.ask("ann", "check", "Good morning.")
        gateway.close()
    assert [shown(line) for line in lines] == ["Hello, ann."], lines
    sys.stdout.write("It works.\n")


def main() -> None:
    """Pass lines from this terminal to the gateway, and its answers back, until the end of input."""
    gateway = Gateway(*sys.argv[1:])
    for text in map(str.strip, sys.stdin):
        for line in gateway.ask("ann", "terminal", text) if text else ():
            sys.stdout.write(shown(line) + "\n")
            sys.stdout.flush()
    gateway.close()


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else main()
