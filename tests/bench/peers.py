"""What a step costs beside four other agent libraries. Prints an Org table of CPU time and memory.

python tests/bench/peers.py [--steps 20 200] [--rounds N] [--folder F]
The others are installed by pip into an environment of their own, in F or a folder that goes away. All send to
the server of growth.py, which answers with a call of echo so many times and then in words. quoth has all of
it on: the door, policy, receipts, audit and a transcript in a store on disk. Of the others only the loop and
the tool are asked for; nothing is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import growth
from growth import RULES, TASK, Tick

PACKAGES = {
    "pydantic-ai": ["pydantic-ai-slim[openai]"],
    "openai-agents": ["openai-agents"],
    "smolagents": ["smolagents[openai]"],
    "langgraph": ["langgraph", "langchain", "langchain-openai"],
}
FIRST = {name: packages[0].partition("[")[0] for name, packages in PACKAGES.items()}


def echo(text: str) -> str:
    """Return the given text unchanged.

    Args:
        text: What to return
    """
    return text


def ticking(tick: Tick, kind: str = "AsyncClient") -> Any:
    """An HTTP client that tells of each request."""

    async def told(_request: Any) -> None:
        tick()

    hook: Any = told if kind == "AsyncClient" else lambda _request: tick()
    return getattr(import_module("httpx"), kind)(event_hooks={"request": [hook]}, timeout=120)


def asked(url: str, tick: Tick) -> Any:
    """The client of OpenAI's SDK, which three of them take."""
    openai = import_module("openai")
    return openai.AsyncOpenAI(base_url=url, api_key="k", http_client=ticking(tick), max_retries=0)


def with_pydantic_ai(url: str, steps: int, tick: Tick) -> str:
    ai, models = import_module("pydantic_ai"), import_module("pydantic_ai.models.openai")
    provider = import_module("pydantic_ai.providers.openai").OpenAIProvider(openai_client=asked(url, tick))
    limits = import_module("pydantic_ai.usage").UsageLimits(request_limit=steps + 2)
    model = models.OpenAIChatModel("gpt-5", provider=provider)
    agent = ai.Agent(model, instructions=RULES, tools=[echo])
    return str(asyncio.run(agent.run(TASK, usage_limits=limits)).output)


def with_openai_agents(url: str, steps: int, tick: Tick) -> str:
    agents = import_module("agents")
    agents.set_tracing_disabled(True)
    model = agents.OpenAIChatCompletionsModel("gpt-5", asked(url, tick))
    agent = agents.Agent("bench", instructions=RULES, tools=[agents.function_tool(echo)], model=model)
    return str(asyncio.run(agents.Runner.run(agent, TASK, max_turns=steps + 2)).final_output)


def with_smolagents(url: str, steps: int, tick: Tick) -> str:
    smol = import_module("smolagents")
    url = url.replace("/v1", "/final_answer/v1")  # it ends by a call
    model = smol.OpenAIModel(
        "gpt-5", api_base=url, api_key="k", client_kwargs={"http_client": ticking(tick, "Client")}
    )
    quiet = import_module("smolagents.monitoring").LogLevel.OFF
    agent = smol.ToolCallingAgent(
        tools=[smol.tool(echo)], model=model, instructions=RULES, verbosity_level=quiet
    )
    return str(agent.run(TASK, max_steps=steps + 2))


def with_langgraph(url: str, steps: int, tick: Tick) -> str:
    openai = import_module("langchain_openai")
    model = openai.ChatOpenAI(
        model="gpt-5", base_url=url, api_key="k", http_async_client=ticking(tick), max_retries=0
    )
    agent = import_module("langchain.agents").create_agent(model, [echo], system_prompt=RULES)
    task = {"messages": [{"role": "user", "content": TASK}]}
    found = asyncio.run(agent.ainvoke(task, {"recursion_limit": 2 * steps + 10}))
    return str(found["messages"][-1].content)


PEERS: dict[str, Callable[[str, int, Tick], str]] = {
    "pydantic-ai": with_pydantic_ai,
    "openai-agents": with_openai_agents,
    "smolagents": with_smolagents,
    "langgraph": with_langgraph,
}


def installed(folder: Path) -> str:
    """The Python of an environment in which the others are."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    wanted = [one for packages in PACKAGES.values() for one in packages]
    subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True, timeout=900)
    return str(python)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, nargs="+", default=[20, 200])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--folder", type=Path, help="of the environment, to be kept")
    options.add_argument("--client", help=argparse.SUPPRESS)
    options.add_argument("--url", help=argparse.SUPPRESS)
    options.add_argument("--versions", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.versions:
        print(", ".join(f"{name} {version(package)}" for name, package in FIRST.items()))
    elif given.client:
        growth.CLIENTS.update(PEERS)
        sys.path.remove(str(Path(__file__).parent))  # agents.py here is another than theirs
        print(json.dumps(growth.one(given.client, given.url, given.steps[0])))
    else:
        with tempfile.TemporaryDirectory(prefix="quoth-peers-") as gone:
            python = installed(given.folder or Path(gone))
            theirs = [python, __file__]
            print(subprocess.run([*theirs, "--versions"], stdout=subprocess.PIPE, text=True).stdout)
            names = ["quoth", growth.RAW, *PEERS]
            growth.measure(
                given.steps, given.rounds, names, lambda name: theirs if name in PEERS else growth.here(name)
            )


if __name__ == "__main__":
    sys.exit(main())
