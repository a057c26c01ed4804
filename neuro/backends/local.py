"""The embedded model: llama.cpp in this process, by xllamacpp; no server to start and no key. ``weights``
finds its file."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from quoth.neuro.backends import wire
from quoth.neuro.backends.base import (
    NO_OPTIONS,
    Completion,
    ContextFullError,
    ModelError,
    RequestOptions,
    Usage,
)
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.weights import KNOWN, Doing, Progress, explicit_weights, find_weights
from quoth.neuro.backends.wire import Roles
from quoth.neuro.backends.wordings import says
from quoth.tools.installing import install_extra

SEED = 20  # any fixed number, so that the same messages give the same reply
# Prompt tokens between two checks of the stop flag. With 128, cancelling takes 1 to 3 s on two slow cores;
# with 2048, the default, reading was 1 % faster but cancelling took half a minute.
BATCH = 128
# Memory for the states of inactive conversations. Resuming one of 800 tokens took 0.2 s instead of 6 s.
PARKED_MIB = 512

# The threads inside llama.cpp now. They are daemons, so that an abandoned answer does not keep the program
# running. But a thread that is in C++ when Python ends aborts the process (seen: exit code 134), so the exit
# first stops them and waits briefly. It also frees the models, because the threads of llama.cpp must not
# outlive their data (seen: exit code -11, 7 times in 24).
_working: dict[threading.Thread, threading.Event] = {}
_loaded: weakref.WeakSet[LocalBackend] = weakref.WeakSet()


def is_at_work() -> bool:
    """Whether llama.cpp is computing a batch, which may take seconds."""
    return bool(_working)


@atexit.register
def _stop_all() -> None:
    for worker, stop in list(_working.items()):
        stop.set()
        worker.join(30.0)
    for backend in list(_loaded):
        backend.let_go(1.0)


# Roles to try in order if the template of a user's own file refuses the roles of a conversation.
STRICTER: dict[wire.Text, wire.Text] = {
    wire.text: wire.text_as_user,
    wire.text_as_user: wire.Text(as_user=True, roles=Roles(system=False)),
}


class RolesRefusedError(ModelError):
    """The template of the model does not support the roles of the conversation."""


class LocalBackend:
    """One GGUF model. The first ``complete`` loads it; requests run one at a time."""

    takes_grammar = True
    tool_view = ""

    def __init__(
        self,
        name: str = "local",
        path: Path | None = None,
        n_ctx: int = 16384,
        threads: int | None = None,
        progress: Progress | None = None,
        temperature: float = 0.0,
        timeout: float = 1800.0,
    ) -> None:
        self.name = name
        self._path = explicit_weights(path) if path is not None else None
        self.context = n_ctx  # size of its context in tokens
        self._threads = threads or _cores()
        self._progress = progress
        self._temperature = temperature
        self._timeout = timeout
        self._wire = wire.text
        self._server: Any = None
        # A lock for worker threads, not for an event loop, because the model outlives event loops.
        self._turn = threading.Lock()

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
        tools: bytes | None = None,
        tool_choice: str = "auto",
        options: RequestOptions = NO_OPTIONS,
    ) -> Completion:
        if any("images" in message for message in messages):
            raise ModelError(
                f"The model {self.name} reads text only, and the task contains an image.", "failed"
            )
        request: dict[str, Any] = {
            "max_tokens": max_tokens,
            "temperature": self._temperature if options.temperature is None else options.temperature,
            "seed": SEED,
            "cache_prompt": True,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # progress reports make it possible to cancel while the prompt is read
        }
        if grammar is not None:
            request["grammar"] = grammar
        elif options.schema is not None:
            request["json_schema"] = options.schema
        note = ""
        while True:
            try:
                completion = await self._answer(request, messages, on_text)
                return replace(completion, note=note) if note else completion
            except RolesRefusedError as refusal:
                if self._wire not in STRICTER:
                    raise
                self._wire = STRICTER[self._wire]
                note = f"{refusal} The conversation is sent in another format from now on."

    async def _answer(
        self, request: dict[str, Any], messages: Messages, on_text: Callable[[str], None] | None
    ) -> Completion:
        body = json.dumps(request).encode()[:-1] + b',"messages":' + messages.written(self._wire) + b"}"
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[str | Completion | Exception] = asyncio.Queue()
        stop = threading.Event()

        def tell(event: str | Completion | Exception) -> None:
            try:
                loop.call_soon_threadsafe(told.put_nowait, event)
            except RuntimeError:  # the loop is closed: no receiver is left
                stop.set()

        worker = threading.Thread(target=self._work, args=(body, stop, tell), name="quoth-local", daemon=True)
        _working[worker] = stop
        worker.start()
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    event = await told.get()
                    if isinstance(event, Completion):
                        return event
                    if isinstance(event, Exception):
                        raise event
                    if on_text is not None:
                        on_text(event)
        except TimeoutError as error:
            sentence = f"The model {self.name} did not finish within {self._timeout:g} s."
            raise ModelError(sentence, "slow") from error
        finally:
            stop.set()

    async def aclose(self) -> None:
        """Unload the model. An abandoned generation ends by itself; this does not wait for it."""
        given_up = any(stop.is_set() for stop in list(_working.values()))
        await asyncio.to_thread(self.let_go, 0.3 if given_up else -1)

    def let_go(self, seconds: float = -1) -> None:
        """Unload the model when no request uses it; wait for that at most ``seconds`` (below 0: without
        limit). The next request loads it again."""
        if self._turn.acquire(timeout=seconds):
            self._server = None
            self._turn.release()

    def _work(self, body: bytes, stop: threading.Event, tell: Callable[[Any], None]) -> None:
        try:
            with self._turn:
                if not stop.is_set():
                    tell(self._generate(body, stop, tell))
        except Exception as error:  # the waiting caller must get every error
            tell(error)
        finally:
            del _working[threading.current_thread()]

    def _generate(self, body: bytes, stop: threading.Event, tell: Callable[[str], None]) -> Completion:
        start = time.monotonic()
        if self._server is None:
            try:
                self._server = self._load(stop)
            except ModelError as fault:  # it is not installed, or damaged
                fault.why = "failed"
                raise
            _loaded.add(self)
        pieces: list[str] = []
        last: dict[str, Any] = {}  # the end of the stream: finish_reason, usage, error

        def hear(raw: bytes) -> bool:
            chunk = json.loads(raw)
            last.update((key, chunk[key]) for key in ("usage", "error") if key in chunk)
            if self._progress is not None and (read := chunk.get("prompt_progress")):
                self._progress("reading", read["processed"], read["total"])
            for choice in chunk.get("choices") or ():
                if piece := choice["delta"].get("content"):
                    pieces.append(piece)
                    tell(piece)
                last["finish"] = choice["finish_reason"]
            return stop.is_set()  # true ends the generation

        try:
            self._server.handle_chat_completions(body, hear)
        except ValueError as fault:  # the template of the model does not support these messages
            raise self._refusal({"message": str(fault).strip().rpartition("\n")[2]}) from fault
        if error := last.get("error"):
            raise self._refusal(error)
        if not last.get("finish") and not stop.is_set():
            raise ModelError(f"The model {self.name} stopped in the middle of its answer.", "failed")
        used = last.get("usage", {})
        usage = Usage(
            used.get("prompt_tokens", 0),
            used.get("completion_tokens", 0),
            used.get("prompt_tokens_details", {}).get("cached_tokens", 0),
            time.monotonic() - start,
        )
        return Completion("".join(pieces), usage, "length" if last.get("finish") == "length" else "stop")

    def _refusal(self, error: dict[str, Any]) -> ModelError:
        if error.get("type") == "exceed_context_size_error":
            return ContextFullError(
                f"The conversation has {error.get('n_prompt_tokens')} tokens, more than the "
                f"{error.get('n_ctx')} that {self.name} can read; start a new session.",
                self.context,
            )
        message = str(error.get("message", "it did not say why"))
        if "grammar" in message:
            return ModelError(f"The model {self.name} cannot use the given grammar ({message}).")
        kind = RolesRefusedError if says(error, "alternate", "system", "only-users") else ModelError
        return kind(f"The model {self.name} refused the request: {message}")

    def _load(self, stop: threading.Event) -> Any:
        def progress(doing: Doing, done: int, total: int) -> None:
            if stop.is_set():  # joining a gigabyte can be cancelled, too
                raise ModelError("Cancelled.")
            if self._progress is not None:
                self._progress(doing, done, total)

        extra = self.name if self.name in KNOWN else "llama"
        try:
            import xllamacpp
        except ImportError as error:
            raise ModelError(f"The model {self.name} needs llama.cpp. Run: {install_extra(extra)}") from error
        path = self._path or find_weights(self.name.removeprefix("local:"), progress=progress)
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = self.context
        params.n_parallel = 1
        params.cpuparams.n_threads = self._threads
        params.n_batch = params.n_ubatch = BATCH
        params.cache_ram_mib = PARKED_MIB
        # The server object always listens on a free port of 127.0.0.1 (its default). Calls from here do not
        # use that port and need no key; a random key keeps other programs on the machine out (401, seen).
        params.api_keys = [secrets.token_urlsafe()]
        params.ui = params.endpoint_slots = False
        params.n_threads_http = 1
        # Its log goes to fd 2; at level -1 it is silent. Only an invalid grammar still prints two lines
        # there, which does less harm than redirecting fd 2 under other threads.
        params.verbosity = -1
        # Making the server takes the GIL (0.6 s for 0.5B; generating does not), which blocks
        # the event loop and Ctrl-C. So there is no warm-up: the first prompt does it, and can be cancelled.
        params.warmup = False
        # With the CPU alone there is nothing to fit: to measure it, the model would be loaded a second time.
        kinds = {device["type"] for device in xllamacpp.get_device_info()}
        params.fit_params = kinds != {xllamacpp.ggml_backend_dev_type.GGML_BACKEND_DEVICE_TYPE_CPU}
        progress("loading", 0, 1)
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelError(
                f"llama.cpp cannot load {path}: the file is damaged, of a kind this version cannot read, "
                "or too big for the available memory."
            ) from error
        finally:
            if self._progress is not None:
                self._progress("loading", 1, 1)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: only the cores that this process may use
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
