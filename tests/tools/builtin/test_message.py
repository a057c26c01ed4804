"""send-message: what it says, whom it asks, and what it refuses before anybody is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import IT_SENDS_A_MESSAGE, THERE_IS_NO_CHANNEL
from words import Gateway, Spy, shipped

from quoth import Services
from quoth.tools.call.call import Verdict, deny
from quoth.tools.errors import ToolError
from quoth.tools.registry.table import cognitive_tools


class Outbox:
    """A router to the user and to ops, that keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    async def send_message(self, message: str, *, to: str = "user") -> None:
        if message == "lost":
            raise ToolError("The line is dead.")
        self.sent.append((to, message))

    async def list_channels(self) -> list[str]:
        return ["ops", "ann"]


class Asked:
    """A person who remembers what was asked."""

    def __init__(self, said: Verdict) -> None:
        self.said = said
        self.reasons: list[str] = []

    async def request(self, tool: Any, call: Any, reason: str) -> Verdict:
        self.reasons.append(reason)
        return self.said


def post(here: Path, said: Verdict | None = None) -> tuple[Gateway, Outbox, Asked]:
    outbox, person = Outbox(), Asked(said or deny("not now"))
    return shipped(here, consent=person, given={"services": Services(router=outbox)}), outbox, person


SENT = {"success": True, "message": "Message sent successfully"}
ASKS = f"{IT_SENDS_A_MESSAGE} to the channel ops"


@pytest.mark.parametrize("text", ['(send-message "Hi.")', '(send-message :message "Hi." :to "user")'])
def test_a_message_to_the_user_asks_nobody(tmp_path: Path, text: str) -> None:
    here, outbox, person = post(tmp_path)
    result = here.pass_through(text)
    assert (result.status, result.value, result.side_effects) == ("ok", SENT, ("sent:user",))
    assert (outbox.sent, person.reasons) == ([("user", "Hi.")], [])


def test_a_message_to_another_channel_asks(tmp_path: Path) -> None:
    here, outbox, person = post(tmp_path)
    result = here.pass_through('(send-message "Hi." :to "ops")')
    assert (result.status, person.reasons, outbox.sent) == ("denied", [ASKS], [])
    here, outbox, person = post(tmp_path, Verdict("allow"))
    result = here.pass_through('(send-message "Hi." :to "ops")')
    assert (result.status, result.side_effects, outbox.sent) == ("ok", ("sent:ops",), [("ops", "Hi.")])


REFUSED = [
    ('(send-message "")', "invalid", "The message is empty."),
    ('(send-message " \n" :to "ops")', "invalid", "The message is empty."),
    (
        '(send-message "Hi." :to "opps")',
        "error",
        f"{THERE_IS_NO_CHANNEL} opps. Did you mean ops? The channels are user, ops, ann.",
    ),
    ('(send-message "Hi." :to "")', "error", f"{THERE_IS_NO_CHANNEL} . The channels are user, ops, ann."),
    ('(send-message "lost")', "error", "The line is dead."),
]


@pytest.mark.parametrize(("text", "status", "sentence"), REFUSED)
def test_what_cannot_be_sent_is_told_and_nobody_is_asked(
    tmp_path: Path, text: str, status: str, sentence: str
) -> None:
    here, outbox, person = post(tmp_path)
    result = here.pass_through(text)
    assert (result.status, result.message) == (status, sentence)
    assert (outbox.sent, person.reasons) == ([], [])


def test_a_dry_run_sends_nothing_and_says_that_it_would_be_sent(tmp_path: Path) -> None:
    here, outbox, person = post(tmp_path)
    plan = here.pass_through('(eval :form (send-message "Hi.") :dry-run True)')
    assert (plan.status, outbox.sent, person.reasons) == ("ok", [], [])
    assert "send-message" in str(plan.value)


def test_it_may_be_replaced_and_its_option_stands_with_it(tmp_path: Path) -> None:
    mine = cognitive_tools.get("send-message")
    assert mine.ends_turn
    assert mine.describe()["ends_turn"] is True
    assert "ends_turn" not in cognitive_tools.get("read-file").describe()


@pytest.mark.parametrize(
    "say", [lambda router: router.send_message("Hi."), lambda router: router.list_channels()]
)
def test_without_a_router_it_says_what_is_missing(say: Callable[[Any], Any], tmp_path: Path) -> None:
    async def go() -> str:
        try:
            await say(Services().router)
        except ToolError as error:
            return str(error)
        return ""

    assert asyncio.run(go()).startswith("No router for messages is configured")
    assert not Spy().ran
