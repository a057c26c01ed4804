"""A well-behaved MCP server for tests, made with the SDK: a process on stdio, or Streamable HTTP on loopback.

``python tests/vocabulary/mcp_server.py [--effects FILE] [--knobs FILE] [--many N] [--handshake | --http]``

``note`` and ``order`` append a line to the file of ``--effects``, so that a test can count effects. The file
of ``--knobs`` is JSON and is read again at every request: ``{"tools": {NAME: {FIELD: VALUE} or null}}``
changes the fields of a tool as they are on the wire, or removes it; ``"only"`` names the tools to keep,
``"many"`` adds ``tool-0`` and so on, ``"says"`` are its instructions, ``"page"`` is the number of tools on a
page. The tool ``change`` writes such a change and announces it. With ``--handshake`` the server knows only
the revisions before 2026-07-28.
With ``--http`` the first line of stdout is its URL.

A tool that asks serves both kinds of revisions: by a request of its own in a handshake revision, and by an
``InputRequiredResult`` in 2026-07-28.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

HERE = Path(__file__).resolve()
PICTURE = base64.b64decode(  # a PNG of one point
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
INPUT_REQUIRED = "2026-07-28"
LEVELS = ("debug", "info", "error")  # of the log, those that are used here
Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult


def command(*argv: str, real: bool = False) -> list[str]:
    """The command of this server, for a configuration. Unless it is to be ``real``, it is a fork of a process
    that has imported the SDK (commands.py), which else takes it a second."""
    from commands import calls

    return [*([sys.executable] if real else calls()), str(HERE), *argv]


def config(
    *argv: str, name: str = "fixture", env: dict[str, str] | None = None, real: bool = False
) -> dict[str, Any]:
    """An ``mcpServers`` file that contains this server."""
    program, *args = command(*argv, real=real)
    return {"mcpServers": {name: {"command": program, "args": args, "env": env or {}}}}


def _object(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_TOOLS: dict[str, dict[str, Any]] = {
    "echo": {
        "title": "Echo",
        "description": "Return the text.",
        "inputSchema": _object(["text"], text={**_TEXT, "description": "The text to return."}),
        "annotations": {"readOnlyHint": True},
    },
    "add": {
        "description": "Add two whole numbers.",
        "inputSchema": _object(["a", "b"], a=_WHOLE, b=_WHOLE),
        "outputSchema": _object(["sum"], sum=_WHOLE),
    },
    "note": {
        "description": "Append a line to the file of effects.",
        "inputSchema": _object(["text"], text=_TEXT),
        "annotations": {"destructiveHint": True},
    },
    "getIssue": {
        "description": "Return an issue as structured content: names and arguments in the camel's case.",
        "inputSchema": _object(
            ["repoName", "issueNumber"],
            repoName=_TEXT,
            issueNumber={"type": "integer", "minimum": 1},
            state={"enum": ["open", "closed"], "default": "open"},
            labels={"type": "array", "items": _TEXT, "maxItems": 3, "uniqueItems": True},
        ),
        "outputSchema": _object(["title", "number"], title=_TEXT, number=_WHOLE),
    },
    "wait": {
        "description": "Report progress for some steps, then end.",
        "inputSchema": _object(["steps"], steps=_WHOLE, seconds={"type": "number", "default": 0.02}),
    },
    "media": {
        "description": "Return a text, a picture, a sound, a link and a resource.",
        "inputSchema": _object(),
    },
    "long": {"description": "Return many lines.", "inputSchema": _object(["lines"], lines=_WHOLE)},
    "fail": {"description": "Return an error.", "inputSchema": _object(text=_TEXT)},
    "die": {"description": "End the server's process.", "inputSchema": _object()},
    "environment": {"description": "Return the names of the environment.", "inputSchema": _object()},
    "order": {
        "description": "Order an item, after asking a person for its size, once a round.",
        "inputSchema": _object(["item"], item=_TEXT, rounds={"type": "integer", "default": 1}),
    },
    "log-in": {"description": "Ask a person to open a page.", "inputSchema": _object()},
    "password": {"description": "Ask a person for a password in a form.", "inputSchema": _object()},
    "later": {"description": "Return only a state, and end when it comes back.", "inputSchema": _object()},
    "sample": {"description": "Ask the client's model.", "inputSchema": _object(["text"], text=_TEXT)},
    "roots": {"description": "Ask for the client's roots.", "inputSchema": _object()},
    "task": {"description": "Answer with a task instead of a result.", "inputSchema": _object()},
    "change": {
        "description": "Change a field of a tool and announce it.",
        "inputSchema": _object(["tool", "fields"], tool=_TEXT, fields={"type": ["object", "null"]}),
    },
}
_SIZE = _object(
    ["size"],
    size={"type": "string", "title": "Size", "enum": ["small", "large"], "default": "small"},
    gift={"type": "boolean", "title": "As a gift", "default": False},
)


class Fixture:
    """The server's tools, and the files it reads and writes."""

    def __init__(self, effects: str = "", knobs: str = "", many: int = 0) -> None:
        self.effects, self.knobs_file, self.many = effects, knobs, many
        self.bus = InMemorySubscriptionBus()
        self.level = "info"  # of the log, for clients with a handshake
        self.followed: set[str] = set()  # resources

    def knobs(self) -> dict[str, Any]:
        try:
            return dict(json.loads(Path(self.knobs_file).read_text())) if self.knobs_file else {}
        except FileNotFoundError:
            return {}

    def tools(self) -> list[types.Tool]:
        knobs = self.knobs()
        named = {name: {"name": name, **fields} for name, fields in _TOOLS.items()}
        for number in range(int(knobs.get("many", self.many))):
            fields = {"description": f"Return {number}.", "inputSchema": _object(text=_TEXT)}
            named[f"tool-{number}"] = {"name": f"tool-{number}", **fields}
        if (only := knobs.get("only")) is not None:
            named = {name: named[name] for name in only}
        for name, fields in knobs.get("tools", {}).items():
            if fields is None:
                named.pop(name, None)
            else:
                named[name] = {"name": name, "inputSchema": _object(), **named.get(name, {}), **fields}
        return [types.Tool.model_validate(fields) for fields in named.values()]

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = self.tools()
        begin = int(params.cursor) if params and params.cursor else 0
        end = begin + int(self.knobs().get("page", 50))
        return types.ListToolsResult(
            tools=tools[begin:end], next_cursor=str(end) if end < len(tools) else None
        )

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        known = [tool.name for tool in self.tools()]
        if params.name not in known:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        serve: Callable[[Context, types.CallToolRequestParams, dict[str, Any]], Awaitable[Answer]] | None
        serve = getattr(self, "tool_" + params.name.replace("-", "_").lower(), None)
        if serve is None:
            return _text(params.name)
        return await serve(ctx, params, params.arguments or {})

    def effect(self, line: str) -> None:
        if self.effects:
            with open(self.effects, "a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())

    # The tools, by their names.

    async def tool_echo(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        return _text(args["text"])

    async def tool_add(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        return _structured({"sum": args["a"] + args["b"]})

    async def tool_note(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        self.effect(f"note {args['text']}")
        return _text("noted")

    async def tool_getissue(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        return _structured({"title": f"{args['repoName']} is slow", "number": args["issueNumber"]})

    async def tool_wait(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        for step in range(args["steps"]):
            await ctx.session.report_progress(step + 1, args["steps"], f"step {step + 1}")
            await asyncio.sleep(args.get("seconds", 0.02))
        return _text(f"{args['steps']} steps")

    async def tool_media(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        picture = base64.b64encode(PICTURE).decode()
        file = types.TextResourceContents(uri="memo://one", mime_type="text/plain", text="a memo")
        return types.CallToolResult(
            content=[
                types.TextContent(text="Five things."),
                types.ImageContent(data=picture, mime_type="image/png"),
                types.AudioContent(data=base64.b64encode(b"RIFF0000WAVE").decode(), mime_type="audio/wav"),
                types.ResourceLink(uri="memo://two", name="two", title="The second memo"),
                types.EmbeddedResource(resource=file),
            ]
        )

    async def tool_long(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        return _text("\n".join(f"line {number}" for number in range(args["lines"])))

    async def tool_fail(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        said = types.TextContent(text=args.get("text", "It failed on purpose."))
        return types.CallToolResult(content=[said], is_error=True)

    async def tool_die(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        os._exit(3)

    async def tool_environment(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        return _text("\n".join(sorted(os.environ)))

    async def tool_order(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        sizes: list[str] = []
        for number in range(args.get("rounds", 1)):
            message = f"Which size of {args['item']}?" + (f" ({number + 1})" if number else "")
            form = types.ElicitRequestFormParams(message=message, requested_schema=_SIZE)
            said = await _ask(ctx, params, types.ElicitRequest(params=form), number)
            if isinstance(said, types.InputRequiredResult):
                return said
            if said["action"] != "accept":
                return _text(f"Not ordered: {said['action']}.")
            sizes.append(said["content"]["size"])
        self.effect(f"order {args['item']} {' '.join(sizes)}")
        return _text(f"Ordered {args['item']}, {' '.join(sizes)}.")

    async def tool_log_in(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        page = types.ElicitRequestURLParams(
            message="Log in to the shop.", url="https://shop.example/login?state=1", elicitation_id="login-1"
        )
        said = await _ask(ctx, params, types.ElicitRequest(params=page))
        return said if isinstance(said, types.InputRequiredResult) else _text(f"The page: {said['action']}.")

    async def tool_password(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        form = _object(["password"], password={"type": "string", "title": "Your password"})
        wanted = types.ElicitRequestFormParams(message="Log in here.", requested_schema=form)
        said = await _ask(ctx, params, types.ElicitRequest(params=wanted))
        return said if isinstance(said, types.InputRequiredResult) else _text(f"The form: {said['action']}.")

    async def tool_later(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        if ctx.protocol_version >= INPUT_REQUIRED and params.request_state is None:
            return types.InputRequiredResult(request_state="later")
        return _text("now")

    async def tool_sample(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        message = types.SamplingMessage(role="user", content=types.TextContent(text=args["text"]))
        wanted = types.CreateMessageRequestParams(messages=[message], max_tokens=100)
        said = await _ask(ctx, params, types.CreateMessageRequest(params=wanted))
        return said if isinstance(said, types.InputRequiredResult) else _text(said["content"]["text"])

    async def tool_roots(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        said = await _ask(ctx, params, types.ListRootsRequest())
        if isinstance(said, types.InputRequiredResult):
            return said
        return _text("\n".join(str(root["uri"]) for root in said["roots"]))

    async def tool_task(self, ctx: Context, params: Any, args: dict[str, Any]) -> Any:
        now = "2026-11-01T00:00:00Z"
        task = {"taskId": "t1", "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": None}
        return {"resultType": "task", "task": task, **task}

    async def tool_change(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        knobs = self.knobs()
        changed = knobs.setdefault("tools", {})
        fields = args["fields"]
        changed[args["tool"]] = fields if fields is None else {**(changed.get(args["tool"]) or {}), **fields}
        Path(self.knobs_file).write_text(json.dumps(knobs))
        await ctx.session.send_tool_list_changed()
        await self.bus.publish(ToolsListChanged())
        return _text("changed")

    # Two tools that only a knob adds.

    async def tool_log(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        """Say one thing at each of three levels."""
        for level in ("debug", "info", "error"):
            message: Any = types.LoggingMessageNotificationParams(level=level, data=level, logger="fixture")  # type: ignore[arg-type]
            if ctx.protocol_version >= INPUT_REQUIRED:
                await ctx.session.send_log_message(level, level, "fixture")  # type: ignore[arg-type]
            elif LEVELS.index(level) >= LEVELS.index(self.level):
                await ctx.session.send_notification(types.LoggingMessageNotification(params=message))
        return _text("logged")

    async def tool_touch(self, ctx: Context, params: Any, args: dict[str, Any]) -> Answer:
        """Announce that a resource has changed."""
        if args["uri"] in self.followed:
            await ctx.session.send_resource_updated(args["uri"])
        await self.bus.publish(ResourceUpdated(args["uri"]))
        return _text("touched")

    async def set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self.level = params.level
        return types.EmptyResult()

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        if not str(params.uri).startswith("memo://"):
            raise MCPError(types.INVALID_PARAMS, f"Unknown resource: {params.uri}")
        self.followed.add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.followed.discard(str(params.uri))
        return types.EmptyResult()

    # Resources and prompts.

    async def list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        memo = types.Resource(uri="memo://one", name="one", description="A memo.", mime_type="text/plain")
        return types.ListResourcesResult(resources=[memo])

    async def read_resource(self, ctx: Context, params: Any) -> types.ReadResourceResult:
        if str(params.uri) == "memo://picture":
            data = base64.b64encode(PICTURE).decode()
            blob = types.BlobResourceContents(uri=params.uri, mime_type="image/png", blob=data)
            return types.ReadResourceResult(contents=[blob])
        if str(params.uri) != "memo://one":
            raise MCPError(types.INVALID_PARAMS, f"Unknown resource: {params.uri}")
        memo = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text="Buy tea.")
        return types.ReadResourceResult(contents=[memo])

    async def list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        argument = types.PromptArgument(name="topic", description="What about.", required=True)
        prompt = types.Prompt(name="summarise", description="Ask for a summary.", arguments=[argument])
        return types.ListPromptsResult(prompts=[prompt])

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != "summarise":
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        text = f"Summarise {(params.arguments or {}).get('topic', 'this')}."
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description="Ask for a summary.", messages=[message])

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        found = [one for one in ("tea", "toast") if one.startswith(params.argument.value)]
        return types.CompleteResult(completion=types.Completion(values=found, total=len(found)))

    def server(self) -> Server[Any]:
        return Server(
            "fixture",
            version="1.0",
            instructions=self.knobs().get("says", "A server for tests."),
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
            on_completion=self.complete,
            on_set_logging_level=self.set_level,
            on_subscribe_resource=self.subscribe,
            on_unsubscribe_resource=self.unsubscribe,
            on_subscriptions_listen=ListenHandler(self.bus),
        )


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


def _structured(value: dict[str, Any]) -> types.CallToolResult:
    said = types.TextContent(text=json.dumps(value))
    return types.CallToolResult(content=[said], structured_content=value)


async def _ask(
    ctx: Context, params: types.CallToolRequestParams, request: Any, number: int = 0
) -> types.InputRequiredResult | dict[str, Any]:
    """The client's answer to a request, as wire data; an InputRequiredResult where it has not come yet. The
    state contains the call and the answers so far, so that any process of this server can continue."""
    if ctx.protocol_version < INPUT_REQUIRED:
        kinds: dict[str, Any] = {
            "elicitation/create": types.ElicitResult,
            "sampling/createMessage": types.CreateMessageResult,
            "roots/list": types.ListRootsResult,
        }
        said = await ctx.session.send_request(request, kinds[request.method])
        return dict(said.model_dump(mode="json", by_alias=True, exclude_none=True))
    call = f"{params.name} {json.dumps(params.arguments, sort_keys=True)}"
    state = json.loads(params.request_state or json.dumps({"call": call, "answers": []}))
    if state["call"] != call:
        raise MCPError(types.INVALID_PARAMS, "The state is that of another call.")
    answers: list[dict[str, Any]] = state["answers"]
    if number < len(answers):
        return answers[number]
    key = f"question-{number}"
    if (answer := (params.input_responses or {}).get(key)) is not None:
        answers.append(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
        params.request_state, params.input_responses = json.dumps(state), None
        return answers[number]
    return types.InputRequiredResult(input_requests={key: request}, request_state=json.dumps(state))


async def _stdio(server: Server[Any], handshake: bool) -> None:
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        if handshake:
            await serve_loop(server, read, write, lifespan_state={}, init_options=options)
        else:
            await server.run(read, write, options)


async def _http(server: Server[Any]) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    options = uvicorn.Config(server.streamable_http_app(), log_level="error")
    await uvicorn.Server(options).serve(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--effects", default="")
    parser.add_argument("--knobs", default="")
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--handshake", action="store_true")
    parser.add_argument("--http", action="store_true")
    given = parser.parse_args()
    server = Fixture(given.effects, given.knobs, given.many).server()
    asyncio.run(_http(server) if given.http else _stdio(server, given.handshake))


if __name__ == "__main__":
    main()
