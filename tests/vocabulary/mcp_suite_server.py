"""The server that the server half of ``@modelcontextprotocol/conformance`` examines: quoth's own, behind its
gate, with a table of the tools that the suite calls by name.

What a value of quoth can say are tools of that table. What quoth's server does not offer (samples, logs,
subscriptions, questions of other kinds, prompts with arguments) is added to its SDK's server here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ServerEvent,
    SubscriptionBus,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_client import SECRET
from mcp_server import PICTURE
from words import tool

from quoth.agent.client import AsyncAgent
from quoth.agent.serve.app import build_app
from quoth.agent.serve.gate import App, Receive, Scope, Send
from quoth.agent.serve.keys import AccessKey, Keys
from quoth.agent.serve.mcp_calls import Context, McpClient
from quoth.agent.serve.mcp_http import PATH, client_of, mcp_part
from quoth.agent.serve.mcp_server import McpServer
from quoth.tools.call.context import current_context
from quoth.tools.errors import ToolError
from quoth.tools.mcp.results import parts_of
from quoth.tools.registry.table import ToolTable

KEY = AccessKey("suite", "s" * 32, frozenset({"ask", "decide"}))
DATA = base64.b64encode(PICTURE).decode()
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA=="
Own = Callable[[Context, Any, Callable[[], Awaitable[Any]]], Awaitable[Any]]


def text(said: str) -> types.TextContent:
    return types.TextContent(text=said)


def file(uri: str, said: str, kind: str = "text/plain") -> types.TextResourceContents:
    return types.TextResourceContents(uri=uri, text=said, mime_type=kind)


IMAGE = types.ImageContent(data=DATA, mime_type="image/png")

# Tools of quoth


def table() -> ToolTable:
    """The tools whose values quoth's server turns into content itself, and one that asks before each call."""
    made = ToolTable()
    embedded = types.EmbeddedResource(resource=file("test://embedded-resource", "An embedded resource."))
    mixed = types.EmbeddedResource(
        resource=file("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json")
    )
    contents: dict[str, list[Any]] = {
        "test-simple-text": [text("This is a simple text response for testing.")],
        "test-image-content": [IMAGE],
        "test-audio-content": [types.AudioContent(data=SOUND, mime_type="audio/wav")],
        "test-embedded-resource": [embedded],
        "test-multiple-content-types": [text("Multiple content types test:"), IMAGE, mixed],
        "test-logging-tool": [text("Nothing is logged.")],
    }
    bodies: dict[str, Callable[[], Any]] = {name: said(parts) for name, parts in contents.items()}
    bodies |= {"test-error-handling": failing, "test-tool-with-progress": stepping}
    for name, body in bodies.items():
        tool(name, body, effects=["reads"], table=made)
    for name in ("test-input-required-result-request-state", "test-input-required-result-tampered-state"):
        tool(name, lambda: "Paid.", effects=["pays"], table=made)
    return made


def said(parts: list[Any]) -> Callable[[], Any]:
    return lambda: parts_of(parts, current_context())


def failing() -> None:
    raise ToolError("This tool intentionally returns an error for testing")


async def stepping() -> str:
    """Three calls inside this one: each is told."""
    for _ in range(3):
        await current_context().call("test-simple-text")
    return "Three steps."


# What is added: questions to the client


def form(message: str, **properties: Any) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str) -> types.CreateMessageRequest:
    asked = types.SamplingMessage(role="user", content=text(prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[asked], max_tokens=100)
    )


ROOTS = types.ListRootsRequest()
NAME = form("What is your name?", name={"type": "string"})
CAPABILITIES = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
# The rounds of questions of each tool, for clients of 2026-07-28.
ROUNDS: dict[str, Sequence[Mapping[str, Any]]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [{"capital_question": sample("What is the capital of France?")}],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": NAME, "greeting": sample("Generate a greeting"), "client_roots": ROOTS}
    ],
    "test_input_required_result_multi_round": [
        {"step1": NAME},
        {"step2": form("Step 2: What is your favorite color?", color={"type": "string"})},
    ],
    "test_input_required_result_capabilities": [{"name": NAME, "sample": sample("Say yes")}],
    "test_input_required_result_prompt": [
        {"user_context": form("What context should the prompt use?", context={"type": "string"})}
    ],
    "test_streaming_elicitation": [{"user_name": NAME}],
}


def next_question(ctx: Context, params: Any) -> types.InputRequiredResult | None:
    """What the client is asked next, of what it said that it can answer; None if all is answered."""
    at, can = int(params.request_state or "0"), ctx.session.client_capabilities
    rounds = [
        {key: one for key, one in each.items() if getattr(can, CAPABILITIES[one.method], None) is not None}
        for each in ROUNDS[params.name]
    ]
    if rounds[at].keys() <= (params.input_responses or {}).keys():
        at += 1
    if at == len(rounds):
        return None
    return types.InputRequiredResult(input_requests=rounds[at], request_state=str(at))


CHOICES = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
OPTIONS = ["option1", "option2", "option3"]
# The question of each tool, for clients with a handshake; the arguments of its call come first.
QUESTIONS: dict[str, Callable[[Mapping[str, Any]], types.ElicitRequest | types.CreateMessageRequest]] = {
    "test_sampling": lambda args: sample(args["prompt"]),
    "test_elicitation": lambda args: form(
        args["message"], username={"type": "string"}, email={"type": "string"}
    ),
    "test_elicitation_sep1034_defaults": lambda args: form(
        "Please check these.",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    ),
    "test_elicitation_sep1330_enums": lambda args: form(
        "Please choose.",
        untitledSingle={"type": "string", "enum": OPTIONS},
        titledSingle={"type": "string", "oneOf": CHOICES},
        legacyEnum={"type": "string", "enum": OPTIONS, "enumNames": ["One", "Two", "Three"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        titledMulti={"type": "array", "items": {"anyOf": CHOICES}},
    ),
}


async def ask(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Ask the client within its call, and return what it answers."""
    asked = QUESTIONS[params.name](params.arguments or {})
    kind: type[Any] = (
        types.ElicitResult if isinstance(asked, types.ElicitRequest) else types.CreateMessageResult
    )
    answer = await ctx.session.send_request(
        asked, kind, metadata=ServerMessageMetadata(related_request_id=ctx.request_id)
    )
    return types.CallToolResult(content=[text(f"Answered: {answer.model_dump_json()}")])


async def log(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    for step in ("started", "goes on", "completed"):
        entry = types.LoggingMessageNotificationParams(level="info", data=f"Tool execution {step}")
        await ctx.session.send_notification(
            types.LoggingMessageNotification(params=entry), related_request_id=ctx.request_id
        )
    return types.CallToolResult(content=[text("Three entries.")])


async def lack(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Needs a model of the client, which has not said that it has one."""
    raise MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "This tool asks for a sample.",
        {"requiredCapabilities": {"sampling": {}}},
    )


async def go_on(ctx: Context, params: types.CallToolRequestParams) -> Any:
    return next_question(ctx, params) or types.CallToolResult(content=[text("All is answered.")])


def telling(bus: SubscriptionBus, event: ServerEvent) -> Callable[[Context, Any], Awaitable[Any]]:
    async def tell(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        await bus.publish(event)
        return types.CallToolResult(content=[text("Told.")])

    return tell


BUS = InMemorySubscriptionBus()
ADDED: dict[str, Callable[[Context, Any], Awaitable[Any]]] = {
    **dict.fromkeys(ROUNDS.keys() - {"test_input_required_result_prompt"}, go_on),
    **dict.fromkeys(QUESTIONS, ask),
    "test_tool_with_logging": log,
    "test_missing_capability": lack,
    "test_trigger_tool_change": telling(BUS, ToolsListChanged()),
    "test_trigger_prompt_change": telling(BUS, PromptsListChanged()),
}


async def list_tools(ctx: Context, params: Any, ours: Callable[[], Awaitable[Any]]) -> types.ListToolsResult:
    found: types.ListToolsResult = await ours()
    more = [
        types.Tool(name=name, description="A tool of the suite", input_schema={"type": "object"})
        for name in sorted(ADDED)
    ]
    return found.model_copy(update={"tools": [*found.tools, *more]})


async def call_tool(ctx: Context, params: Any, ours: Callable[[], Awaitable[Any]]) -> Any:
    return await ADDED[params.name](ctx, params) if params.name in ADDED else await ours()


# What is added: resources and prompts

RESOURCES: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": file("test://static-text", "This is the content of the static text resource."),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", blob=DATA, mime_type="image/png"
    ),
    "test://template/123/data": file("test://template/123/data", '{"id": "123"}', "application/json"),
    "test://watched-resource": file("test://watched-resource", "Watched"),
}


async def list_resources(ctx: Context, params: Any, ours: Callable[[], Awaitable[Any]]) -> Any:
    found: types.ListResourcesResult = await ours()
    more = [types.Resource(uri=uri, name=uri, mime_type=one.mime_type) for uri, one in RESOURCES.items()]
    return found.model_copy(update={"resources": [*found.resources, *more]})


async def read_resource(ctx: Context, params: Any, ours: Callable[[], Awaitable[Any]]) -> Any:
    found = RESOURCES.get(params.uri)
    return await ours() if found is None else types.ReadResourceResult(contents=[found])


def prompts(given: Mapping[str, str]) -> dict[str, list[Any]]:
    """The contents of each prompt with these arguments."""
    uri = given.get("resourceUri", "test://example-resource")
    return {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [text(f"arg1={given.get('arg1')}, arg2={given.get('arg2')}")],
        "test_prompt_with_embedded_resource": [types.EmbeddedResource(resource=file(uri, "A resource."))],
        "test_prompt_with_image": [IMAGE, text("Please analyze the image above.")],
        "test_input_required_result_prompt": [text("All is answered.")],
    }


ARGUMENTS = {
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
}


async def list_prompts(ctx: Context, params: Any, ours: Callable[[], Awaitable[Any]]) -> Any:
    found: types.ListPromptsResult = await ours()
    more = [
        types.Prompt(
            name=name,
            description="A prompt of the suite",
            arguments=[types.PromptArgument(name=one, required=True) for one in ARGUMENTS.get(name, [])],
        )
        for name in prompts({})
    ]
    return found.model_copy(update={"prompts": [*found.prompts, *more]})


async def get_prompt(ctx: Context, params: Any, ours: Callable[[], Awaitable[Any]]) -> Any:
    found = prompts(params.arguments or {}).get(params.name)
    if found is None:
        return await ours()
    if params.name in ROUNDS and (question := next_question(ctx, params)) is not None:
        return question
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in found])


async def agree(ctx: Context, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def add_to(server: Server[Any]) -> None:
    """Add what the suite asks for to quoth's server."""
    added: dict[str, Own] = {
        "tools/list": list_tools,
        "tools/call": call_tool,
        "resources/list": list_resources,
        "resources/read": read_resource,
        "prompts/list": list_prompts,
        "prompts/get": get_prompt,
    }
    for method, own in added.items():
        _before(server, method, own)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, agree)
    server.add_request_handler(
        "subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(BUS)
    )
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, agree)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, agree)


def _before(server: Server[Any], method: str, own: Own) -> None:
    entry = server.get_request_handler(method)
    assert entry is not None, method

    async def handler(ctx: Context, params: Any) -> Any:
        return await own(ctx, params, lambda: entry.handler(ctx, params))

    server.add_request_handler(method, entry.params_type, handler)


# The server


def with_key(app: App) -> App:
    """Send the key with each request; the suite has none."""

    async def keyed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            header = (b"authorization", f"Bearer {KEY.token}".encode())
            scope = {**scope, "headers": [*scope["headers"], header]}
        await app(scope, receive, send)

    return keyed


@contextlib.asynccontextmanager
async def suite_server(folder: Path) -> AsyncIterator[str]:
    """Within it the server serves; its URL."""

    def opening(client: McpClient) -> AsyncAgent:
        return AsyncAgent(workspace=folder, session="suite", user=client.user, tools=table())

    made = McpServer(
        opening,
        client_of,
        secret=SECRET,
        place=str(folder),
        named=lambda tool: tool.name.replace("-", "_"),
    )
    add_to(made.server)
    app = with_key(build_app([mcp_part(made)], Keys((KEY,))))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="on")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    serving = asyncio.create_task(server.serve(sockets=[socket]))
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}{PATH}"
    finally:
        server.should_exit = True
        await serving
