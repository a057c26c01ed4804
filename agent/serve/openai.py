"""The part ``/v1`` of ``quoth serve``: models, chat completions and responses as OpenAI's SDKs take them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from quoth.agent.client import AsyncAgent
from quoth.agent.config.agents import agent_names
from quoth.agent.run.models import OwnModel
from quoth.agent.run.spec import attached, images_of, require_images
from quoth.agent.run.subagents import purse_of
from quoth.agent.serve.app import ServedPart
from quoth.agent.serve.gate import key_of, refuse
from quoth.agent.serve.keys import AccessKey
from quoth.agent.serve.openai_shape import (
    Answer,
    ChatAnswer,
    ChatRequest,
    TurnEnd,
    model_data,
    read_request,
)
from quoth.agent.serve.responses_shape import ResponseAnswer, read_response_request
from quoth.agent.serve.talks import Talks, TurnInProgress, UnknownResponseError
from quoth.neuro.backends.base import NO_OPTIONS
from quoth.neuro.backends.messages import Messages
from quoth.tools.errors import BusyError, QuothError, UsageError, did_you_mean

MODEL = "quoth"
PLAIN = ":plain"  # ends the name of a model that answers without tools and begins no session
ALIVE_SECONDS = 15.0  # between comments that keep a connection open
FIRST_SECONDS = 10.0  # for an error to become a status


def model_names() -> list[str]:
    """The models: the agent of the server, and each agent of the user's configuration."""
    names = [MODEL, *(name for name in agent_names() if name != MODEL)]
    return [model for name in names for model in (name, name + PLAIN)]


def openai_part(opening: Callable[[AccessKey, str], AsyncAgent]) -> ServedPart:
    """The routes of chat completions; ``opening`` opens the agent of a key, by the name of its model."""
    talks, created = Talks(opening), int(time.time())

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [model_data(name, created) for name in model_names()]})

    async def model(request: Request) -> Response:
        name = request.path_params["model"]
        return JSONResponse(model_data(name, created)) if name in model_names() else _unknown_model(name)

    async def completions(request: Request) -> Response:
        return await answered(request, _read_chat)

    async def responses(request: Request) -> Response:
        return await answered(request, read_response_request)

    async def answered(request: Request, read: Callable[[bytes], tuple[ChatRequest, Answer]]) -> Response:
        key = key_of(request.scope)
        try:
            asked, answer = read(await request.body())
            if asked.model not in model_names():
                return _unknown_model(asked.model)
            if asked.model.endswith(PLAIN):
                agent = talks.agent(key, asked.model.removesuffix(PLAIN))
                return await _plain(agent, asked, answer, request)
            turn = await talks.begin(key, asked, request.headers.get("x-session", ""))
            if isinstance(answer, ResponseAnswer) and asked.response:
                answer.keep = partial(talks.keep, key, asked.model, turn.session)
        except QuothError as error:
            return _error(error)
        return await (_streamed if asked.stream else _whole)(turn, answer, request)

    async def response(request: Request) -> Response:
        id, forget = request.path_params["id"], request.method == "DELETE"
        models = [name for name in model_names() if not name.endswith(PLAIN)]
        try:
            said = talks.kept(key_of(request.scope), models, id, forget=forget)
        except UnknownResponseError as error:
            return refuse(404, str(error))
        except QuothError as error:
            return _error(error)
        gone = {"id": id, "object": "response", "deleted": True}
        return JSONResponse(gone) if forget else Response(said, media_type="application/json")

    @contextlib.asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await talks.aclose()

    routes = [
        Route("/v1/models", models),
        Route("/v1/models/{model:path}", model),
        Route("/v1/chat/completions", completions, methods=["POST"]),
        Route("/v1/responses", responses, methods=["POST"]),
        Route("/v1/responses/{id}", response, methods=["GET", "DELETE"]),
    ]
    return ServedPart(routes, serving=serving, ending=talks.finish)


def _read_chat(body: bytes) -> tuple[ChatRequest, Answer]:
    request = read_request(body)
    return request, ChatAnswer.of(request)


async def _whole(turn: TurnInProgress, answer: Answer, request: Request) -> Response:
    """The answer in one piece. A client that leaves stops the run."""
    assert turn.task is not None
    leaving = asyncio.create_task(_left(request))
    try:
        await asyncio.wait({turn.task, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not turn.task.done():
            turn.stop()
    if turn.error is not None:
        return _error(turn.error)
    thoughts = []
    while not turn.pieces.empty() and (piece := turn.pieces.get_nowait()) is not None:  # empty: it left
        thoughts += [piece.text] if piece.thought else []
    return JSONResponse(answer.whole(turn.end("\n\n".join(thoughts))), headers={"X-Session": turn.session})


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _streamed(turn: TurnInProgress, answer: Answer, request: Request) -> Response:
    """The answer as it arrives. An error before its first piece is a status."""
    assert turn.task is not None
    first, leaving = asyncio.create_task(turn.pieces.get()), asyncio.create_task(_left(request))
    try:
        await asyncio.wait({first, leaving}, timeout=FIRST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        turn.stop()
        raise
    finally:
        leaving.cancel()
    if leaving.done() and not leaving.cancelled():
        turn.stop()
    if turn.error is not None and turn.task.done():
        return _error(turn.error)

    async def events() -> AsyncIterator[bytes]:
        waiting = first
        try:
            yield answer.begin()
            while True:
                await asyncio.wait({waiting}, timeout=ALIVE_SECONDS)
                if not waiting.done():
                    yield b": keep-alive\n\n"
                    continue
                if (piece := waiting.result()) is None:
                    break
                if shown := answer.piece(piece.text, thought=piece.thought):
                    yield shown
                waiting = asyncio.create_task(turn.pieces.get())
            for chunk in answer.end(turn.end()):
                yield chunk
        finally:
            waiting.cancel()
            if turn.task is not None and not turn.task.done() and turn.reply is None:
                turn.stop()

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", "X-Session": turn.session}
    return StreamingResponse(events(), media_type="text/event-stream", headers=headers)


async def _plain(agent: AsyncAgent, asked: ChatRequest, answer: Answer, request: Request) -> Response:
    """The model's own answer, without tools. A client that leaves stops it."""
    if asked.previous:
        raise UsageError(f"{asked.model} keeps no response: leave previous_response_id out.")
    options = agent.models.request_options or NO_OPTIONS
    if asked.temperature is not None:
        options = replace(options, temperature=asked.temperature)
    model = OwnModel(agent.models.backend, purse=purse_of(agent.host))
    said, most = _as_messages(agent, asked), asked.reply_tokens or 1024
    work = asyncio.create_task(model.answer(said, most, replace(options, schema=asked.schema)))
    leaving = asyncio.create_task(_left(request))
    try:
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        work.cancel()
    await asyncio.wait({work})
    end = TurnEnd(text := "" if work.cancelled() else work.result())
    if not asked.stream:
        return JSONResponse(answer.whole(end))
    chunks = [answer.begin(), answer.piece(text), *answer.end(end)]
    return Response(b"".join(chunks), media_type="text/event-stream")


def _as_messages(agent: AsyncAgent, asked: ChatRequest) -> Messages:
    """The conversation of a request for the model itself. Raises UsageError."""
    messages, host = Messages(), agent.host
    if asked.instructions:
        messages.append("system", asked.instructions)
    for one in asked.history:
        messages.append(one.role, one.text)
    images = images_of(attached(asked.images, host.pages, host.workspace), host.pages)
    require_images(agent.models.backend(), images)
    messages.append("user", asked.text, images=images)
    return messages


def _error(error: QuothError) -> Response:
    if isinstance(error, UnknownResponseError):
        return _invalid(400, str(error), "previous_response_id", "previous_response_not_found")
    if isinstance(error, BusyError):
        return refuse(409, str(error))
    return refuse(400, str(error)) if isinstance(error, UsageError) else _failed(str(error))


def _failed(sentence: str) -> Response:
    error = {"message": sentence, "type": "server_error", "param": None, "code": None}
    return JSONResponse({"error": error}, 500)


def _unknown_model(name: str) -> Response:
    known = model_names()
    said = f"Unknown model {name}.{did_you_mean(name, known)} The models are {', '.join(known)}."
    return _invalid(404, said, "model", "model_not_found")


def _invalid(status: int, sentence: str, param: str, code: str) -> Response:
    error = {"message": sentence, "type": "invalid_request_error", "param": param, "code": code}
    return JSONResponse({"error": error}, status)
