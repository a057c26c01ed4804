"""The commands ``quoth call``, ``eval`` and ``read``: run calls and programs without a model; read
replies."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quoth.agent.cli.common import read_text, run_call, show_result, text_of, tools_of, with_agent
from quoth.agent.cli.options import DONE, REMOTE, USAGE, AgentOptions, Options, argument, switch
from quoth.agent.terminal.output import complain, print_json, print_line, tell_next
from quoth.tools.errors import UsageError
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent


class CallOptions(AgentOptions):
    form: str = argument("FORM", "the call form, such as '(echo :text \"hi\")'; - reads it from stdin")


class ReadOptions(Options):
    works_in_workspace, groups = False, f"tools --dialect {REMOTE}"
    file: str = argument("FILE", "file of the model's reply (default: stdin)", nargs="?", default="-")
    display: bool = switch("--display", "print the text that a person would see")


def call(options: CallOptions) -> int:
    form = text_of(options.form)
    return run_call(options, lambda agent: agent.call(form))


def read(options: ReadOptions) -> int:
    from quoth.neuro.prompt.dialects import TAGS, named_dialect
    from quoth.tools.lisp.forms import canonical

    text = read_text(options.file)
    # Without a dialect, read every spelling, and the tags of tools that have one.
    dialect = TAGS if options.dialect is None else named_dialect(options.dialect)
    reading = dialect.read_text(text, tools_of(options))
    if options.json:
        more: dict[str, Any] = {"display": reading.display, "confidence": reading.confidence}
        more |= {"passed": [asdict(one) for one in reading.passed]}
        print_json(reading.to_json() | (more if options.display else {}))
    else:
        if options.display and reading.display:
            print_line(reading.display)
        for found in reading.calls if not options.display else ():
            print_line(canonical(found.form))
            for repair in found.repairs:
                complain(f"line {found.line}: repaired: {repair}")
        for fault in reading.errors:
            complain(str(fault))
        told = {fault.line for fault in reading.errors}
        for tag in reading.passed:
            if tag.line not in told:
                complain(str(tag))
        if not reading.calls and not reading.errors and not options.display:
            complain("This text contains no call.")
    return USAGE if reading.errors else DONE


MEMORY_DECIDES: Final = (
    "No rule asks about a call in it. Permissions of memory blocks may still ask or deny;"
    " to see them: quoth memory list"
)


class EvalOptions(AgentOptions):
    form: str = argument("FORM", "the program, such as '(* 6 7)'; - reads it from stdin")
    dry_run: bool = switch("--dry-run", "show what the program may call; run only calls that read")
    pure: bool = switch("--dry-run=pure", "show what the program may call; run no call at all")


def evaluate(options: EvalOptions) -> int:
    program = text_of(options.form)
    if program == options.form and len(program) < 200 and "(" not in program and Path(program).is_file():
        raise UsageError(f"{program} is a file. To run it: quoth eval - < {program}")
    if options.dry_run or options.pure:
        return _dry_run(options, program)
    return run_call(options, lambda agent: agent.eval(program))


def _dry_run(options: EvalOptions, program: str) -> int:
    """Show the calls that a program may run; with ``--session``, also ask for approval of all of them."""

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
