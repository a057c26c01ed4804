"""Runs a guard or body with a deadline: a synchronous function in a thread, an asynchronous one as a task.

The function receives the arguments that it has parameters for. Pieces of a generator are passed on at once.
It stops everything it starts.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from functools import lru_cache
from queue import SimpleQueue
from typing import Any

from quoth.tools.call.context import (
    PausableClock,
    ToolContext,
    enter_context,
    require_begun,
    use_loop,
    within,
)
from quoth.tools.errors import StoreError, ToolError
from quoth.tools.text import short

GRACE_SECONDS = 5.0  # for a body to clean up after its deadline
UNSHOWN = 100  # pieces of a generator that may wait for the event loop; more would starve other tasks
STOP_SECONDS = 0.3  # for a body to clean up after its call is cancelled: the canceller is waiting


def brief(error: BaseException) -> str:
    """An exception as one short line."""
    first = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
    if isinstance(error, StoreError):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = "there is not enough memory for it"
    return short(text, 300).rstrip(".")


def kind_of(error: BaseException) -> str:
    """An exception for a model: without its text, which may contain anything, unless it is a StoreError."""
    return brief(error) if isinstance(error, (StoreError, MemoryError)) else type(error).__name__


async def run_function(
    function: Callable[..., Any],
    bindings: Mapping[str, Any],
    context: ToolContext,
    seconds: float,
    clock: PausableClock | None = None,
    grace: float | None = None,
    take: Callable[[Any], None] | None = None,
) -> Any:
    """Run a guard, gate or body and return its value. A synchronous function runs in its own thread. The
    deadline, ``seconds``, does not count pauses of ``clock``; after it, the function has ``grace`` seconds to
    clean up. Each piece of a generator is given to ``take``; its value is its return value, or the list of
    pieces if it returns None. Raises TimeoutError, and ToolError for a call that was not awaited."""
    inside = enter_context(context)
    inside.run(use_loop, asyncio.get_running_loop())
    if inspect.iscoroutinefunction(function):
        value: Any = function(**bindings)
    else:
        value = await _in_thread(function, bindings, inside, seconds, clock, take)
        if take is not None and inspect.isasyncgen(value):
            value = _pieces(value, take)
        if not inspect.isawaitable(value):
            require_begun(inside)
            return value
    awaited = _Abandonable(value) if inspect.iscoroutine(value) else value
    task = asyncio.create_task(_shielded(awaited), context=inside)
    task.add_done_callback(forget)  # this call may be cancelled just after the task has ended
    patience = STOP_SECONDS
    try:
        if not await within(task, seconds, clock):
            patience = GRACE_SECONDS if grace is None else grace
            raise TimeoutError
    finally:
        if (
            not task.done()
        ):  # past the deadline, or this call is cancelled: let it clean up, for a limited time
            task.cancel()
            try:
                await asyncio.wait({task}, timeout=patience)
            finally:
                if not task.done() and isinstance(awaited, _Abandonable):
                    awaited.abandoned = True
                    task.cancel()
    if task.cancelled():
        raise ToolError("It cancelled its own task.")
    try:
        value = task.result()
        require_begun(inside)
        return value
    finally:
        del task  # breaks the cycle: its error refers to this frame


class _Abandonable:
    """Awaits a coroutine until it is ``abandoned``: a coroutine that resists cancellation is then no longer
    awaited, so that its task ends."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self.abandoned = False

    def __await__(self) -> Generator[Any, Any, Any]:
        sent, thrown = None, None
        while True:
            try:
                step = self._coroutine
                waits = step.send(sent) if thrown is None else step.throw(thrown)
            except StopIteration as end:
                return end.value
            sent = thrown = None
            try:
                sent = yield waits
            except BaseException as error:
                if self.abandoned:
                    raise
                thrown = error


async def _pieces(made: AsyncGenerator[Any, Any], take: Callable[[Any], None]) -> list[Any]:
    """The pieces of an asynchronous generator; each is given to ``take`` as it comes."""
    pieces = []
    async with contextlib.aclosing(made):
        async for piece in made:
            pieces.append(piece)
            take(piece)
    return pieces


async def _shielded(value: Any) -> Any:
    """Await the body's awaitable; an exception that would stop the host ends only the body."""
    try:
        return await value
    except TimeoutError as error:  # the body's own, not our deadline
        raise ToolError(f"{brief(error)}.") from error
    except (SystemExit, KeyboardInterrupt) as error:
        ended = RuntimeError(f"it raised {type(error).__name__}")
        raise ended.with_traceback(error.__traceback__) from None


def forget(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a task that is no longer awaited, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


async def _in_thread(
    function: Callable[..., Any],
    bindings: Mapping[str, Any],
    inside: contextvars.Context,
    seconds: float,
    clock: PausableClock | None,
    take: Callable[[Any], None] | None,
) -> Any:
    """Run in a thread, which is stopped after the deadline."""
    loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    ended: list[tuple[Any, Exception | None]] = []

    def settle(value: Any, error: Exception | None) -> None:
        if not future.done():
            ended.append((value, error))
            future.set_result(None)

    def made() -> Any:
        value = function(**bindings)
        if take is None or not inspect.isgenerator(value):
            return value
        pieces: list[Any] = []
        room = threading.Semaphore(UNSHOWN)

        def show(piece: Any) -> None:
            room.release()
            take(piece)

        while True:
            try:
                pieces.append(next(value))
            except StopIteration as end:
                return pieces if end.value is None else end.value
            while not room.acquire(timeout=0.1):  # the thread can be stopped between two attempts
                pass
            loop.call_soon_threadsafe(show, pieces[-1])

    def work() -> Callable[[], None]:
        value: Any = None
        failed: Exception | None = None
        try:
            value = inside.run(made)
        except StopIteration as error:  # cannot be set on a future
            failed = RuntimeError(f"StopIteration: {error}").with_traceback(error.__traceback__)
        except Exception as error:
            failed = error
        except Stop:
            raise
        except BaseException as error:  # SystemExit and its like end the body, not the host
            failed = RuntimeError(f"it raised {type(error).__name__}").with_traceback(error.__traceback__)

        def tell() -> None:
            nonlocal failed
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(settle, value, failed)
            failed = None  # breaks the cycle: it refers to the frame of ``work``

        return tell

    stop = start_thread(work, f"quoth-{getattr(function, '__name__', 'body')}")
    try:
        if not await within(future, seconds, clock):
            raise TimeoutError
    finally:
        if not future.done():
            future.cancel()
            stop()
    value, error = ended.pop()
    if isinstance(error, TimeoutError):  # the body's own, not our deadline
        raise ToolError(f"{brief(error)}.") from error
    if error is not None:
        try:
            raise error
        finally:
            del error  # breaks the cycle: it refers to this frame
    return value


def offered_to(
    function: Callable[..., Any], marks: Mapping[str, Any], args: Mapping[str, Any]
) -> dict[str, Any]:
    """The ``marks`` of the host and the arguments of a call for which a function has parameters."""
    own = {name.replace("-", "_"): value for name, value in args.items()}
    wanted = _parameters(function)
    offered = {name: value for name, value in {**marks, **own}.items() if name in wanted}
    return {**own, **offered} if REST in wanted else offered


REST = "**"


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    """The parameter names of a function, cached; with REST if it takes any others by name."""
    try:
        known = inspect.signature(function).parameters
        rest = [REST] if any(one.kind is one.VAR_KEYWORD for one in known.values()) else []
        return frozenset([*known, *rest])
    except ValueError:  # a Hy function may have a parameter named by a Python keyword, such as ``as``
        code = function.__code__
        return frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


# Threads for functions that block; an idle thread waits for the next function. A function that does not end
# blocks neither other functions nor the end of the process: its thread is not waited for or used again.


KEPT = 16  # threads that may wait for a function

# The function to run; it returns a callback, which is called once the thread is free again.
Job = Callable[[], Callable[[], None]]


class Stop(BaseException):
    """Thrown into a thread whose function must end."""


class _Thread(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._job: Job | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def give(self, job: Job | None) -> None:
        self._job = job
        self._jobs.put(job)

    def run(self) -> None:
        with contextlib.suppress(Stop):  # it may arrive just after the function has ended
            while (job := self._jobs.get()) is not None and self._goes_on(job()):
                del job  # and the objects it refers to

    def _goes_on(self, tell: Callable[[], None]) -> bool:
        with self._lock:  # a Stop thrown from now on must not hit the next function
            goes_on = not self._stopped and len(_idle) < KEPT
            self._job = None
            self.name = "quoth-idle"
            if goes_on:
                _idle.append(self)
        tell()
        return goes_on

    def stop(self, job: Job) -> None:
        import ctypes  # here: few functions have to be stopped

        with self._lock:
            if self._job is job and self.ident is not None:
                self._stopped = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(Stop))


_idle: list[_Thread] = []  # the most recently used is used next
os.register_at_fork(after_in_child=_idle.clear)  # a fork has only its own thread


def start_thread(job: Job, name: str) -> Callable[[], None]:
    """Run a job in a thread, and return a function that stops it. Any Python loop ends; a thread that is
    stuck in C is abandoned."""
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _Thread()
    thread.name = name
    thread.give(job)
    if thread.ident is None:
        thread.start()
    return lambda: thread.stop(job)


def end_idle_threads() -> None:
    """End the threads that wait for a function."""
    ending = []
    while _idle:
        with contextlib.suppress(IndexError):  # another thread has taken the last one
            ending.append(_idle.pop())
    for thread in ending:
        thread.give(None)
    for thread in ending:
        thread.join()
