"""The one door: every call form passes these stages in this order, and nothing else runs a guard or a body.

Read ``STAGES`` for the order and each stage for its rule; a stage returns None to let the call go on, or the
Outcome that ends it. The door knows no model and no loop, and takes nothing a model says about permission.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import dataclasses
import inspect
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from tools.audit import Audit, MemoryAudit
from tools.context import (
    ALLOW,
    Call,
    Status,
    ToolContext,
    ToolError,
    ToolFailure,
    ToolResult,
    Verdict,
    ask,
    deny,
    encodable,
    enter_context,
    plain,
)
from tools.errors import InvalidCallError, QuothError, UnknownToolError
from tools.form import CallForm, from_json
from tools.policy import EffectsPolicy, Policy
from tools.redact import Redactor
from tools.schema import bind, validate
from tools.table import CognitiveTool, ToolTable, cognitive_tools

GUARD_SECONDS = 10.0
GATE_SECONDS = 2.0
MAX_DEPTH = 10
VERDICTS = ("policy", "rule", "guard", "gate", "consent")
GRACE_SECONDS = 2.0  # for a cancelled body to put things away


@dataclass(frozen=True)
class Refusal:
    """The call is over a limit; ``reason`` says which, and when there is room again."""

    reason: str


class Reservation:
    """The place kept for one call within its limits; this one keeps none, for a call that nothing limits.

    ``commit`` when the body begins: the call has counted from then on, whatever the body does. ``release``
    gives the place back, and does nothing after ``commit``. ``left`` tells the model what it has left.
    """

    left: str = ""

    def commit(self) -> None:
        """Count the call for good."""

    def release(self) -> None:
        """Do not count it."""


class Limits(Protocol):
    """Counts calls: keeps a place for this one, or refuses it."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal: ...


class Gate(Protocol):
    """An outside reviewer of the calls of tools with ``:gate`` (seed 000)."""

    async def check(self, tool: CognitiveTool, call: Call, context: ToolContext) -> Verdict: ...


class Consent(Protocol):
    """Whoever can say yes for the person. ``None`` means that nobody is there: the call stays pending."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None: ...


class NoLimits:
    """Stands where no counter is. A tool that declares a limit is refused: an unkept promise fails closed."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal:
        if tool.cooldown or tool.daily_limit:
            return Refusal("its :cooldown or :daily-limit cannot be counted here, so it is not run")
        return Reservation()


class NobodyToAsk:
    """Consent where nobody is: every question stays open."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None:
        return None


@dataclass(frozen=True)
class Outcome:
    """How a passage ended: a status, a value if it is ok, a sentence if it is not."""

    status: Status
    value: Any = None
    message: str = ""


@dataclass
class Passage:
    """One call on its way through the stages: what has been found out about it so far."""

    call: Call
    context: ToolContext
    tool: CognitiveTool | None = None
    args: dict[str, Any] = field(default_factory=dict)
    reservation: Reservation = field(default_factory=Reservation)
    questions: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)  # who said what, for the audit

    @property
    def known_tool(self) -> CognitiveTool:
        assert self.tool is not None, "look-up comes first"
        return self.tool


class Door:
    """The door to one table. Its parts are given by the host and cannot be reached from a form.

    ``workspace`` and the other services come with each call's ToolContext. One door may serve many sessions.
    """

    def __init__(
        self,
        table: ToolTable = cognitive_tools,
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        gate: Gate | None = None,
        consent: Consent | None = None,
        audit: Audit | None = None,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self.table = table
        self.policy = policy or EffectsPolicy()
        self.limits = limits or NoLimits()
        self.gate = gate
        self.consent = consent or NobodyToAsk()
        self.audit = audit or MemoryAudit()
        self.max_depth = max_depth

    async def dispatch(self, call: Call, context: ToolContext) -> ToolResult:
        """Take one call through all stages and return its result; never raises for anything a call can do.

        asyncio.CancelledError alone passes through, after the audit row is written.
        """
        started, now = time.monotonic(), datetime.now(UTC)
        passage = Passage(call, context)
        passage.context = dataclasses.replace(
            context,
            side_effects=[],
            said=passage.said,
            tool_names=tuple(self.table.names()),
        )

        async def nested(form: CallForm) -> ToolResult:
            """A call the body makes: through this door, and what it did counts as done by the body too."""
            result = await self.dispatch(_inner(call, form), context)
            passage.context.side_effects.extend(result.side_effects)
            return result

        passage.context = dataclasses.replace(passage.context, dispatch=nested)
        stage, outcome = "look-up", Outcome("cancelled", message=f"{call.tool} was cancelled.")
        try:
            for stage, step in STAGES:  # noqa: B007  the row says where it ended
                ended = await step(self, passage)
                if ended is not None:
                    outcome = ended
                    break
        except Exception as error:  # a part of the host failed; the call has its result nevertheless
            outcome = Outcome("error", message=f"{call.tool} stopped at {stage}: {_brief(error)}.")
        finally:
            with contextlib.suppress(Exception):  # a place that cannot be given back stays taken
                passage.reservation.release()
            result = self._record(passage, stage, outcome, started, now)
        return result

    def refuse(self, call: Call, context: ToolContext, status: Status, message: str) -> ToolResult:
        """The result of a call that its host stops before the door (a run's own limit), in the audit like
        any."""
        passage = Passage(call, dataclasses.replace(context, side_effects=[]))
        return self._record(
            passage, "host", Outcome(status, message=message), time.monotonic(), datetime.now(UTC)
        )

    def _record(
        self, passage: Passage, stage: str, outcome: Outcome, started: float, now: datetime
    ) -> ToolResult:
        """The last stage: the audit row, written before anybody sees the result."""
        call = passage.call
        row = {
            "tool": passage.tool.name if passage.tool else encodable(call.tool)[:200],
            "digest": call.form.digest,
            "status": outcome.status,
            "stage": stage,
            "duration_ms": int((time.monotonic() - started) * 1000),
            "ts": now.isoformat(timespec="milliseconds"),
            "route": call.route,
        }
        effects = tuple(passage.context.side_effects)
        message = outcome.message or "\n".join(passage.said)
        try:
            self.audit.write(row | self._evidence(passage, message, effects))
        except Exception as error:
            # What cannot be recorded is not acknowledged.
            said = "The call was done, but its" if outcome.status == "ok" else "The"
            outcome = Outcome("error", message=f"{said} audit row could not be written: {_brief(error)}.")
            row["status"], message = "error", outcome.message
        return ToolResult(call.id, str(row["tool"]), outcome.status, outcome.value, message, effects, row)

    def _evidence(self, passage: Passage, message: str, effects: tuple[str, ...]) -> dict[str, Any]:
        """Who called what, who said what of it and what came of it, without secrets; for the audit alone."""
        call, tool = passage.call, passage.tool
        if tool is None and call.tool in self.table:
            tool = self.table.get(call.tool)
        hide = Redactor(call.form, tool.params if tool else (), self.table.secrets)
        said = {name: hide.text(passage.verdicts.get(name, "")) for name in VERDICTS}
        return said | {
            "id": call.id,
            "session": call.session,
            "user": call.user,
            "parent": call.parent,
            "depth": call.depth,
            "round": call.round,
            "place": call.order,
            "side_effects": tuple(hide.text(effect) for effect in effects),
            "message": hide.text(message),
            "form": hide.form_text(),
            "schema_hash": self._schema_hash(),
        }

    def _schema_hash(self) -> str:
        """Which tools there were to call; one whose schema cannot be made must not stop the others."""
        try:
            return self.table.schema_hash
        except Exception:
            return ""


def new_call(form: CallForm, **marks: Any) -> Call:
    """A Call with a fresh id; ``marks`` are the host's (route, user, session, depth, parent, round,
    order)."""
    return Call(id=secrets.token_hex(5), form=form, **marks)


def _inner(call: Call, form: CallForm) -> Call:
    """A call made by the body of ``call``: one deeper, same user and session."""
    return dataclasses.replace(
        call, id=secrets.token_hex(5), form=form, route="program", depth=call.depth + 1, parent=call.id
    )


async def dispatch(
    name: str, args: Mapping[str, Any], context: ToolContext, *, table: ToolTable = cognitive_tools
) -> ToolResult:
    """Dispatch by name and raw arguments (seed 002) through a door of its own on ``table``."""
    return await Door(table).dispatch(new_call(from_json({"tool": name, "args": args})), context)


# The stages


async def look_up(door: Door, passage: Passage) -> Outcome | None:
    call = passage.call
    if call.depth > door.max_depth:
        return Outcome("denied", message=f"{call.tool} is nested deeper than {door.max_depth} calls.")
    try:
        passage.tool = door.table.get(call.tool)
    except UnknownToolError as error:
        hint = ""
        if "eval" in door.table and not error.nearest:
            hint = " To compute something, give a Lisp program to eval: (eval (* 2 (+ 3 4)))."
        return Outcome("unknown", message=f"{error}{hint}")
    return None


async def check_arguments(door: Door, passage: Passage) -> Outcome | None:
    tool, form = passage.known_tool, passage.call.form
    try:
        bound = bind(tool.name, tool.params, form.args, form.positional)
        passage.args = validate(tool.name, tool.params, tool.model, bound)
    except InvalidCallError as error:
        return Outcome("invalid", message=f"{error} It is called as {tool.signature()}.")
    # From here on the call is its canonical self: one digest, however it was spelt.
    given = {name: passage.args[name] for name in bound}
    passage.call = dataclasses.replace(passage.call, form=CallForm(tool.name, given))
    return None


async def check_limits(door: Door, passage: Passage) -> Outcome | None:
    """Keep a place for the call. It is given back when a later stage ends the call before the body."""
    try:
        reserved = door.limits.reserve(passage.known_tool, passage.call)
        if isinstance(reserved, Reservation):
            passage.reservation = reserved
            return None
        if not isinstance(reserved, Refusal):
            raise TypeError(f"{reserved!r} is no reservation")
        over = reserved.reason
    except Exception as error:
        over = _uncounted(error)
    return Outcome("limited", message=f"{passage.call.tool} is limited: {over}.")


def _uncounted(error: Exception) -> str:
    return f"its calls could not be counted ({_brief(error)})"


async def ask_policy(door: Door, passage: Passage) -> Outcome | None:
    try:
        verdict = _verdict(door.policy.judge(passage.known_tool, passage.call, passage.args, passage.context))
    except Exception as error:
        verdict = deny(f"the policy failed ({_brief(error)})")
    passage.verdicts["rule"] = verdict.rule
    return _weigh(passage, "policy", verdict)


async def ask_guard(door: Door, passage: Passage) -> Outcome | None:
    """The tool's own guard: True or a Verdict. One that raises, hangs or returns anything else denies."""
    tool = passage.known_tool
    guard = tool._guard
    if guard is None:
        return None
    try:
        said = await _run(
            guard, _bindings(guard, passage, deny=deny, ask=ask), passage.context, GUARD_SECONDS
        )
    except TimeoutError:
        return _weigh(passage, "guard", deny(f"its guard did not answer within {GUARD_SECONDS:g} s"))
    except Exception as error:
        return _weigh(passage, "guard", deny(f"its guard failed ({_brief(error)})"))
    if isinstance(said, Verdict):
        return _weigh(passage, "guard", said)
    if said is True:
        return _weigh(passage, "guard", ALLOW)
    if said is False:
        return _weigh(passage, "guard", deny("its guard refused these arguments"))
    return _weigh(
        passage,
        "guard",
        deny(f'its guard returned {said!r}; a guard returns True, False, (deny "why") or (ask "why")'),
    )


async def ask_gate(door: Door, passage: Passage) -> Outcome | None:
    tool = passage.known_tool
    if not tool.gate or door.gate is None:
        return None
    try:
        async with asyncio.timeout(GATE_SECONDS):
            verdict = _verdict(await door.gate.check(tool, passage.call, passage.context))
    except Exception as error:
        if tool.gate_failure == "open":
            passage.verdicts["gate"] = f"failed open: {_brief(error)}"
            passage.said.append(f"The gate failed ({_brief(error)}) and {tool.name} fails open.")
            return None
        verdict = deny(f"the gate failed ({_brief(error)})")
    return _weigh(passage, "gate", verdict)


async def ask_consent(door: Door, passage: Passage) -> Outcome | None:
    """A person decides what policy, guard or gate would not; nobody there means that the call waits."""
    if not passage.questions:
        return None
    tool, reason = passage.known_tool, "; ".join(passage.questions)
    try:
        said = await door.consent.request(tool, passage.call, reason)
        verdict = _verdict(said) if said is not None else ask(reason)
    except Exception as error:
        verdict = deny(f"consent could not be asked ({_brief(error)})")
    if verdict.kind == "ask":
        passage.verdicts["consent"] = "pending"
        why = (verdict.reason or reason).rstrip(".")
        return Outcome("pending", message=f"{tool.name} waits for a person's approval: {why}.")
    return _weigh(passage, "consent", verdict)


async def run_body(door: Door, passage: Passage) -> Outcome | None:
    tool = passage.known_tool
    body = tool._body
    assert body is not None, "define_tool gives every tool a body"
    try:
        door.audit.prepare()
    except Exception as error:
        return Outcome("error", message=f"{tool.name} was not run: {_brief(error)}.")
    try:
        passage.reservation.commit()
    except Exception as error:
        return Outcome("limited", message=f"{tool.name} is limited: {_uncounted(error)}.")
    try:
        value = plain(await _run(body, _bindings(body, passage), passage.context, tool.timeout))
        if left := passage.reservation.left:
            passage.said.append(left)
        return Outcome("ok", value)
    except TimeoutError:
        return Outcome("timeout", message=f"{tool.name} did not finish within {tool.timeout:g} s.")
    except ToolFailure as failure:
        return Outcome(failure.status, message=failure.message)
    except (ToolError, QuothError) as error:
        return Outcome("error", message=str(error))
    except Exception as error:
        return Outcome("error", message=f"{tool.name} failed: {_brief(error)}.")


STAGES: tuple[tuple[str, Callable[[Door, Passage], Awaitable[Outcome | None]]], ...] = (
    ("look-up", look_up),
    ("validation", check_arguments),
    ("limits", check_limits),
    ("policy", ask_policy),
    ("guard", ask_guard),
    ("gate", ask_gate),
    ("consent", ask_consent),
    ("body", run_body),
)


# Helpers of the stages


def _weigh(passage: Passage, who: str, verdict: Verdict) -> Outcome | None:
    """Allow goes on, ask leaves a question for the consent stage; deny, or any other word, ends the
    passage."""
    if verdict.kind == "allow":  # nothing to explain; a rule that allowed it has its own column
        passage.verdicts[who] = "allow"
        return None
    passage.verdicts[who] = f"{verdict.kind}: {verdict.reason}" if verdict.reason else verdict.kind
    if verdict.kind == "ask":
        passage.questions.append((verdict.reason or "it asks first").rstrip("."))
        return None
    reason = verdict.reason or "no reason was given"
    return Outcome("denied", message=f"{passage.call.tool} was denied: {reason.rstrip('.')}.")


def _verdict(said: Any) -> Verdict:
    """``said`` if it is a Verdict; whoever answers a question with anything else has failed."""
    if isinstance(said, Verdict):
        return said
    raise TypeError(f"{said!r} is no verdict")


def _brief(error: BaseException) -> str:
    """An exception in one short line."""
    first = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
    return text.rstrip(".") if len(text) <= 300 else text[:299] + "…"


def _bindings(function: Callable[..., Any], passage: Passage, **more: Any) -> dict[str, Any]:
    """What a guard or body takes by name: its parameters, ``call`` and ``ctx``."""
    offered = {"call": passage.call, "ctx": passage.context, **more}
    offered |= {name.replace("-", "_"): value for name, value in passage.args.items()}
    wanted = inspect.signature(function).parameters
    return {name: value for name, value in offered.items() if name in wanted}


async def _run(
    function: Callable[..., Any], bindings: Mapping[str, Any], context: ToolContext, seconds: float
) -> Any:
    """Run a guard or body with a deadline; a synchronous one in a thread of its own. Raises TimeoutError."""
    inside = enter_context(context)
    if inspect.iscoroutinefunction(function):
        value: Any = function(**bindings)
    else:
        value = await _in_thread(function, bindings, inside, seconds)
        if not inspect.isawaitable(value):
            return value
    task = asyncio.create_task(_shielded(value), context=inside)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
        if not done:
            raise TimeoutError
    finally:
        if (
            not task.done()
        ):  # past the deadline, or this call is cancelled: let it put things away, not for ever
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
            task.add_done_callback(_forget)
    if task.cancelled():
        raise ToolError("It cancelled itself.")
    return task.result()


async def _shielded(value: Any) -> Any:
    """Await the body's own awaitable; what would end or confuse the host ends the body only."""
    try:
        return await value
    except TimeoutError as error:  # the body's own, not our deadline
        raise ToolError(f"{_brief(error)}.") from None
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"it raised {type(error).__name__}") from None


def _forget(task: asyncio.Task[Any]) -> None:
    """Look at a result nobody waits for any more, so that asyncio does not complain of it."""
    if not task.cancelled():
        task.exception()


class _Stop(BaseException):
    """Thrown into a thread whose deadline has passed."""


async def _in_thread(
    function: Callable[..., Any], bindings: Mapping[str, Any], inside: contextvars.Context, seconds: float
) -> Any:
    """Run in a daemon thread. Past the deadline the thread is told to stop, which ends any Python loop; one
    that is stuck in C is left behind, but cannot keep the process from ending."""
    loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def settle(value: Any, error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value: Any = None
        failed: Exception | None = None
        try:
            value = inside.run(lambda: function(**bindings))
        except StopIteration as error:  # cannot be set on a future
            failed = RuntimeError(f"StopIteration: {error}")
        except Exception as error:
            failed = error
        except _Stop:
            return
        except BaseException as error:  # SystemExit and its like end the body, not the host
            failed = RuntimeError(f"it raised {type(error).__name__}")
        with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(settle, value, failed)

    def quietly() -> None:
        with contextlib.suppress(_Stop):  # it may arrive just after the function has ended
            work()

    thread = threading.Thread(
        target=quietly, name=f"quoth-{getattr(function, '__name__', 'body')}", daemon=True
    )
    thread.start()
    try:
        done, _ = await asyncio.wait({future}, timeout=seconds)
        if not done:
            raise TimeoutError
    finally:
        if not future.done():
            future.cancel()
            _stop(thread)
    error = future.exception()
    if isinstance(error, TimeoutError):  # the body's own, not our deadline
        raise ToolError(f"{_brief(error)}.")
    return future.result()


def _stop(thread: threading.Thread) -> None:
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Stop))
