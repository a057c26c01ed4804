"""The command ``quoth eval``: runs a program in the sandbox, or lists the calls that it may make.

Knows its options and output; the work is in the sandbox and the dry run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quoth.agent.cli.common import run_call, show_result, text_of, with_agent
from quoth.agent.cli.options import DONE, AgentOptions, Commands, argument, switch
from quoth.agent.terminal.output import complain, print_json, print_line, tell_next
from quoth.tools.errors import UsageError
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent

MEMORY_DECIDES: Final = (
    "No rule asks about anything in it. The permissions of memory blocks may still ask or deny:"
    " quoth memory list shows them."
)


@dataclass(init=False, repr=False, eq=False)
class EvalOptions(AgentOptions):
    form: str = argument("FORM", "such as '(* 6 7)'; - reads it from stdin")
    dry_run: bool = switch("--dry-run", "only show what it may call; nothing is done but reading")
    pure: bool = switch("--dry-run=pure", "the same, and nothing is read either")


def add(commands: Commands) -> None:
    commands.add(
        "eval", "Run a Lisp program in the sandbox; its inner calls pass the door.", EvalOptions, evaluate
    )


def evaluate(options: EvalOptions) -> int:
    program = text_of(options.form)
    if program == options.form and len(program) < 200 and "(" not in program and Path(program).is_file():
        raise UsageError(f"{program} is a file. To run it: quoth eval - < {program}")
    if options.dry_run or options.pure:
        return _dry_run(options, program)
    return run_call(options, lambda agent: agent.eval(program))


def _dry_run(options: EvalOptions, program: str) -> int:
    """Show what a program may call; in a session that was named, leave a request for the whole."""

    async def work(agent: AsyncAgent) -> int:
        result = await agent.eval(program, dry_run="pure" if options.pure else True)
        if not result.ok:
            return show_result(result, options.json)
        plan, asks = result.value, bool(result.value["shapes"])
        request = agent.ask_for_plan(program, plan) if asks and options.session else None
        if options.json:
            print_json(plan | {"request": request})
            return DONE
        print_line(visible(plan["text"], lines=True))
        print_line(f"; plan {plan['digest']}")
        if not asks:
            complain(MEMORY_DECIDES if _remembers(plan) else "Nothing in it would be asked.")
        elif request is None:
            complain("To approve it as a whole, give the dry run a session: --session NAME")
        else:
            tell_next("To approve it as a whole", options.typed("approve", request))
            again = options.typed("eval", "FORM", "--session", options.session or "")
            tell_next("Then run it in that session", again)
        return DONE

    return with_agent(options, work)


def _remembers(plan: Any) -> bool:
    """Whether a call somewhere in a plan changes memory."""
    if isinstance(plan, dict):
        return "memory" in plan.get("effects", ()) or any(map(_remembers, plan.values()))
    return isinstance(plan, list) and any(map(_remembers, plan))
