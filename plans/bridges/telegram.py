"""A Telegram bot in front of ``quoth chat``; its arguments are options of that command:

    TELEGRAM_TOKEN=… quoth-telegram --workspace bot --approvers 4711

User and chat come from the fields of an update, never from its text. Telegram repeats an update until it is
confirmed; the bridge confirms it after the gateway stored it. The gateway answers each id once.
"""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # added by python -m: the current folder, in which a workspace may have its own httpx.py

import asyncio
import itertools
import json
import os
import shutil
import signal
from typing import Any

from quoth.tools.storage.lean_httpx import httpx

LONGEST = 2048  # characters of a message: Telegram accepts 4096 units, and an emoji is two
PAUSES = (1, 2, 5, 10, 30)  # seconds before each retry of a method; later retries wait a minute


async def ask(http: httpx.AsyncClient, method: str, wait: int = 0, **fields: Any) -> Any:
    """The result of a method of Telegram's Bot API; None if it is refused."""
    pauses = itertools.chain(PAUSES, itertools.repeat(60))
    while True:
        pause = next(pauses)
        try:
            answer = (await http.post(method, json=fields, timeout=wait + 10)).json()
            if answer["ok"]:
                return answer["result"]
            told, code = answer["description"], answer["error_code"]
            pause = answer.get("parameters", {}).get("retry_after", pause)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:  # its text may contain the token
            told, code = type(error).__name__, 500
        sys.stderr.write(f"telegram: {method}: {told}\n")
        if code < 500 and code != 429:  # a wrong token, or a person who blocked the bot
            return None
        await asyncio.sleep(pause)


def line_of(update: dict[str, Any]) -> dict[str, Any]:
    """The gateway's line for a message or a decision: /approve ID, /deny ID, /answer ID TEXT."""
    message = update["message"]
    command, _, request = message["text"].partition(" ")
    said = {command[1:]: request.strip()} if command in ("/approve", "/deny") else {"text": message["text"]}
    if command == "/answer":
        id, _, text = request.strip().partition(" ")
        said = {"answer": id, "text": text}
    user, chat = str(message["from"]["id"]), str(message["chat"]["id"])
    return {"id": update["update_id"], "user": user, "chat": chat, **said}


async def bring_in(http: httpx.AsyncClient, gateway: asyncio.subprocess.Process) -> None:
    """Write a line for each new message to the gateway."""
    seen = 0
    while (updates := await ask(http, "getUpdates", wait=50, timeout=50, offset=seen + 1)) is not None:
        for update in updates:
            seen = update["update_id"]
            if {"text", "from"} <= update.get("message", {}).keys():
                gateway.stdin.write(json.dumps(line_of(update)).encode() + b"\n")  # type: ignore[union-attr]
        await asyncio.sleep(1)  # the gateway stores them meanwhile, and the next request confirms them
    gateway.terminate()


async def bridge(address: str, *options: str) -> int:
    """Pass messages both ways until the gateway ends; on SIGTERM, it first finishes its current replies."""
    pipe = asyncio.subprocess.PIPE
    quoth = ["quoth"] if shutil.which("quoth") else [sys.executable, "-P", "-m", "quoth"]
    words = (*quoth, "chat", "--gateway", "stdio", *options)
    gateway = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, limit=2**24)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, gateway.terminate)
    async with httpx.AsyncClient(base_url=address) as http:
        coming = asyncio.create_task(bring_in(http, gateway))
        async for line in gateway.stdout:  # type: ignore[union-attr]
            said = json.loads(line)
            if said["kind"] == "asked":
                asked = said["request"]
                lines = [f"{number}  {one}" for number, one in enumerate(asked.get("choices", ()), 1)]
                how = "/answer {id} TEXT" if "question" in asked else "/approve {id} or /deny {id}"
                said["text"] = "\n".join([said["text"], *lines, how.format(**asked)])
            for start in range(0, len(said["text"]), LONGEST):
                part = said["text"][start : start + LONGEST]
                await ask(http, "sendMessage", chat_id=said["chat"], text=part)
        refused = coming.done()
        coming.cancel()
    return await gateway.wait() or int(refused)


HELP = """usage: quoth-telegram [OPTION ...]

A Telegram bot in front of quoth chat. It takes the options of quoth chat, such as --workspace DIR,
--tools FILE and --approvers ID; quoth chat --help lists them. Environment variables:

  TELEGRAM_TOKEN  the token of the bot, from @BotFather
  TELEGRAM_API    the address of another server (default: https://api.telegram.org)

example:
  TELEGRAM_TOKEN=… quoth-telegram --workspace bot --approvers 4711
"""


def main() -> int:
    """Run the bridge of the token in the environment."""
    if {"-h", "--help"} & {*sys.argv[1:]}:
        sys.stdout.write(HELP)
        return 0
    server = os.environ.get("TELEGRAM_API", "https://api.telegram.org")
    if not (token := os.environ.pop("TELEGRAM_TOKEN", "")):  # removed from the gateway's environment
        sys.exit("telegram: Set TELEGRAM_TOKEN to the token of the bot.")
    return asyncio.run(bridge(f"{server}/bot{token}/", *sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
