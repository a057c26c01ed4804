"""How the models of each family spell a call, from public documentation and reports: its address and date.

The texts are our own; each says ``CALL`` or, where it holds several, the calls beside it. A reader of them, a
property and the fuzz harness (mutations.py) use this table.
"""

# ruff: noqa: E501

from __future__ import annotations

from typing import NamedTuple

KNOWN = ["read-file", "write-file", "list-files", "echo", "eval"]
CALL = '(read-file :path "notes.txt")'
ECHO = '(echo :text "a b")'
LIST = "(list-files)"
ARGS = '{"path": "notes.txt"}'
JSON = f'{{"name": "read-file", "arguments": {ARGS}}}'
ECHOED = '{"name": "echo", "arguments": {"text": "a b"}}'
TICKS = "```"


class Spelling(NamedTuple):
    """A text of a family, and the calls that it spells; none: it goes back to the model as a fault."""

    text: str
    calls: tuple[str, ...] = (CALL,)


class Source(NamedTuple):
    """Where a family's markup is documented or reported, and when that was written or read."""

    address: str
    date: str
    spellings: tuple[Spelling, ...]


def _all(*texts: str | Spelling) -> tuple[Spelling, ...]:
    return tuple(one if isinstance(one, Spelling) else Spelling(one) for one in texts)


def _qwen(name: str, *pairs: tuple[str, str]) -> str:
    values = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in pairs)
    return f"<function={name}>\n{values}</function>"


def _dsml(bar: str, *lines: str) -> str:
    return "\n".join(lines).replace("@", f"{bar}DSML{bar}")


READ = _qwen("read-file", ("path", "notes.txt"))

FAMILIES: dict[str, Source] = {
    "qwen": Source(
        "https://github.com/ollama/ollama/issues/16686, /pull/17914; vllm-project/vllm#25028",
        "2026-06-12, 2026-08-21, 2025-09-17",
        _all(
            f"<tool_call>\n{READ}\n</tool_call>",
            f"I will look.\n\n{READ}\n</tool_call>",
            READ,
            READ.replace("\n", ""),
            Spelling(f"<tool_call>\n{READ}\n<function=list-files>\n</function>\n</tool_call>", (CALL, LIST)),
            Spelling(
                f"<tool_call>\n{READ}\n</tool_call>\n<tool_call>\n{_qwen('echo', ('text', 'a b'))}\n</tool_call>",
                (CALL, ECHO),
            ),
            f"<seed:tool_call>\n{READ}\n</seed:tool_call>",
            f"{TICKS}xml\n<tool_call>\n{READ}\n</tool_call>\n{TICKS}",
            "<tool_call>\n<function=read_file>\n<parameter=path>\nnotes.txt\n</function>\n</tool_call>",
            Spelling(
                _qwen("write-file", ("path", "a"), ("content", "  <b>\n\n(x)")),
                ('(write-file :path "a" :content "  <b>\\n\\n(x)")',),
            ),
            Spelling("<function=list-files>\n</function>", (LIST,)),
            Spelling(f"<tool_call>\n{READ[:45]}", ()),
            Spelling(
                "<function=read-file>\n<parameter=path>\na\n<parameter=b>\nc\n</parameter>\n</function>", ()
            ),
            Spelling("<tool_call>\n<function=read-file>\n<path>a</path>\n</function>\n</tool_call>", ()),
        ),
    ),
    "hermes": Source(
        "https://github.com/minpeter/ai-sdk-tool-call-middleware/issues/298; NousResearch/hermes-agent#5315",
        "2026-04-16, 2026-04-05",
        _all(
            f"<tool_call>\n{JSON}\n</tool_call>",
            f"<tool_call>{JSON}",
            f"Now. <tool_call>{JSON}</tool_call>",
            f"<tool_call>\n{{{JSON}}}\n</tool_call>",
            f"<tool_call>\n{JSON[:-1]}\n</tool_call>",
            f"<tool_call>\n{JSON}}}\n</tool_call>",
            f"<tool_call>\n{TICKS}json\n{JSON}\n{TICKS}\n</tool_call>",
            f"<tool_call>\n{JSON.replace(chr(34), '&quot;')}\n</tool_call>",
            f"<tool_call>\n{JSON.replace(chr(34), chr(39))}\n</tool_call>",
            f"<tool_call>read-file\n{ARGS}\n</tool_call>",
            f"<tools>\n</tools>\n<tool_call>\n{JSON}\n</tool_call><|im_end|>",
            f"<function_call>{JSON}</function_call>",
            f'<tool_call name="read-file">{ARGS}</tool_call>',
            f"<tool_call>{JSON}</tool_call",
            Spelling(f"<tool_call>\n{JSON}\n{ECHOED}\n</tool_call>", (CALL, ECHO)),
            Spelling(f"<tool_call>\n[{JSON}, {ECHOED}]\n</tool_call>", (CALL, ECHO)),
            Spelling('<tool_call>\n{"name": "echo", "arguments": {"text": "a "b" c"}}\n</tool_call>', ()),
            Spelling("<tool_call>\nI will read it.\n</tool_call>", ()),
            Spelling("<tool_call>", ()),
            f"<tool_call>\n{CALL}\n</tool_call>",
        ),
    ),
    "deepseek": Source(
        "https://github.com/vllm-project/vllm/pull/23454; https://docs.vllm.ai/en/stable/api/vllm/parser/deepseek_v32/",
        "2025-08-23, read 2026-11-27",
        _all(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read-file\n"
            f"{TICKS}json\n{ARGS}\n{TICKS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read-file<｜tool▁sep｜>{ARGS}<｜tool▁call▁end｜>"
            "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
            f"<｜tool▁call▁begin｜>read-file<｜tool▁sep｜>{ARGS}<｜tool▁call▁end｜>",
            f"<|tool_calls_begin|><|tool_call_begin|>read_file<|tool_sep|>{ARGS}<|tool_call_end|><|tool_calls_end|>",
            f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read-file<｜tool▁sep｜>{ARGS}",
            Spelling(
                f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read-file<｜tool▁sep｜>{ARGS}<｜tool▁call▁end｜>\n"
                '<｜tool▁call▁begin｜>echo<｜tool▁sep｜>{"text": "a b"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
                (CALL, ECHO),
            ),
            Spelling("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read-file<｜tool▁sep｜>notes.txt", ()),
            Spelling("<｜tool▁calls▁begin｜>read the file", ()),
        ),
    ),
    "dsml": Source(
        "https://github.com/ochafik/minja/pull/11; https://ocaml.org/p/deepseek/0.1.0/doc/deepseek.dsml/Dsml/",
        "2025-12-03, read 2026-11-27",
        _all(
            *(
                _dsml(
                    bar,
                    f"<@{block}>",
                    '<@invoke name="read-file">',
                    '<@parameter name="path" string="true">notes.txt</@parameter>',
                    "</@invoke>",
                    f"</@{block}>",
                )
                for bar in ("｜", "｜｜", "|")
                for block in ("function_calls", "tool_calls")
            ),
            _dsml(
                "｜",
                '<@invoke name="read_file">',
                '<@parameter name="path" string="true">notes.txt</@parameter>',
                "</@invoke>",
            ),
            Spelling(
                _dsml(
                    "｜",
                    '<@tool_calls>\n<@invoke name="echo">',
                    '<@parameter name="text" string="false">[1, {"a": null}]</@parameter>',
                    "</@invoke>\n</@tool_calls>",
                ),
                ('(echo :text [1 {"a" None}])',),
            ),
            Spelling(
                _dsml(
                    "｜",
                    '<@tool_calls><@invoke name="echo"><@parameter name="text" string="false">a b</@parameter>',
                ),
                (),
            ),
        ),
    ),
    "glm": Source(
        "https://github.com/waybarrios/vllm-mlx/pull/42; vllm-project/vllm#44326",
        "2026-02-04, 2026-06-02",
        _all(
            "<tool_call>read-file\n<arg_key>path</arg_key>\n<arg_value>notes.txt</arg_value>\n</tool_call>",
            "<tool_call>read-file<arg_key>path</arg_key><arg_value>notes.txt</arg_value></tool_call>",
            "\n<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>notes.txt</arg_value>\n</tool_call>"
            "<|observation|>",
            "<think>so</think><tool_call>read-file\n<arg_key>path</arg_key>\n<arg_value>notes.txt</arg_value>\n"
            "</tool_call>",
            f"<tool_call>read-file{ARGS}</tool_call>",
            "<longcat_tool_call>read-file\n<longcat_arg_key>path</longcat_arg_key>\n"
            "<longcat_arg_value>notes.txt</longcat_arg_value>\n</longcat_tool_call>",
            Spelling("<tool_call>list-files</tool_call>", (LIST,)),
            Spelling("<tool_call>list-files\n</tool_call>", (LIST,)),
            Spelling(
                "<tool_call>list-files\n</tool_call>\n<tool_call>echo\n<arg_key>text</arg_key>\n"
                "<arg_value>a b</arg_value>\n</tool_call>",
                (LIST, ECHO),
            ),
            Spelling("<tool_call>read-file\n<arg_key>path</arg_key>\n<arg_value>notes.txt\n</tool_call>", ()),
            Spelling("<arg_key>path</arg_key>\n<arg_value>notes.txt</arg_value>\n</tool_call>", ()),
        ),
    ),
    "kimi": Source(
        "https://huggingface.co/moonshotai/Kimi-K2-Thinking/blob/main/docs/tool_call_guidance.md; "
        "https://docs.vllm.ai/en/stable/api/vllm/parser/kimi_k2/",
        "read 2026-11-27",
        _all(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.read-file:0<|tool_call_argument_begin|>"
            f"{ARGS}<|tool_call_end|><|tool_calls_section_end|>",
            "<|tool_calls_section_begin|>\n<|tool_call_begin|>functions.read_file:12\n<|tool_call_argument_begin|> "
            f"{ARGS} <|tool_call_end|>\n<|tool_calls_section_end|>",
            f"<|tool_call_begin|>functions.read-file:0<|tool_call_argument_begin|>{ARGS}<|tool_call_end|>",
            f"<|tool_call_begin|>read-file<|tool_call_argument_begin|>{ARGS}<|tool_call_end|><|im_end|>",
            f"I look.<|tool_call_section_begin|><|tool_call_begin|>read-file:0<|tool_call_argument_begin|>{ARGS}",
            Spelling(
                f"<|tool_calls_section_begin|><|tool_call_begin|>functions.read-file:0<|tool_call_argument_begin|>{ARGS}"
                "<|tool_call_end|><|tool_call_begin|>functions.list-files:1<|tool_call_argument_begin|>"
                "<|tool_call_end|><|tool_calls_section_end|>",
                (CALL, LIST),
            ),
            Spelling(f"<|tool_calls_section_begin|>read-file {ARGS}<|tool_calls_section_end|>", ()),
        ),
    ),
    "harmony": Source(
        "https://cookbook.openai.com/article/harmony; https://github.com/kekzl/imp/pull/1716",
        "2025-08-05, read 2026-11-27",
        _all(
            "<|channel|>analysis<|message|>I read it.<|end|><|start|>assistant<|channel|>commentary "
            f"to=functions.read_file <|constrain|>json<|message|>{ARGS}<|call|>",
            f"<|channel|>commentary to=functions.read-file <|constrain|>json<|message|>{ARGS}<|call|>",
            f"<|start|>assistant to=functions.read-file<|channel|>commentary json<|message|>{ARGS}<|call|>",
            "<|start|>assistant<|channel|>commentary to=functions.read-file<|constrain|>json<|message|>"
            f"{ARGS}",
            f"<|channel|>analysis to=functions.read-file code<|message|>{ARGS}<|call|>",
            f"commentary to=functions.read-file json{ARGS}",
            f"to=functions.read-file json{ARGS}",
            f"analysisI read it.assistantcommentary to=functions.read-file json{ARGS}",
            "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
            f"to=functions.read-file <|constrain|>json<|message|>{ARGS}<|call|>",
            Spelling("<|channel|>commentary to=functions.read-file<|message|>notes.txt<|call|>", ()),
            Spelling("<|channel|>analysis<|message|>I should (read-file", ()),
        ),
    ),
    "mistral": Source(
        "https://github.com/osaurus-ai/vmlx-swift/pull/88; vllm-project/vllm#19425",
        "2026-06-24, 2025-06-10",
        _all(
            f"[TOOL_CALLS]read-file[ARGS]{ARGS}",
            f"[TOOL_CALLS]read_file[CALL_ID]a1B2c3D4e[ARGS]{ARGS}",
            f"[TOOL_CALLS]read-file{ARGS}</s>",
            f"[TOOL_CALLS][{JSON}]",
            f'[TOOL_CALLS] [{JSON[:-1]}, "id": "a1B2c3D4e"}}]</s>',
            f"[TOOL_CALLS]{JSON}",
            f"I look.[TOOL_CALLS]read-file[ARGS]{ARGS}",
            Spelling(
                f'[TOOL_CALLS]read-file[ARGS]{ARGS}[TOOL_CALLS]echo[ARGS]{{"text": "a b"}}', (CALL, ECHO)
            ),
            Spelling("[TOOL_CALLS]list-files[ARGS]{}", (LIST,)),
            Spelling("[TOOL_CALLS]read-file[ARGS]notes.txt", ()),
            Spelling(f"read-file[ARGS]{ARGS}", ()),
        ),
    ),
    "llama": Source(
        "https://github.com/mudler/LocalAI/pull/3010; https://github.com/ggml-org/llama.cpp (docs/function-calling.md)",
        "2024-07-25, read 2026-11-27",
        _all(
            f'<|python_tag|>{{"name": "read_file", "parameters": {ARGS}}}<|eom_id|>',
            f'{{"type": "function", "name": "read-file", "parameters": {ARGS}}}<|eot_id|>',
            f"<function=read-file>{ARGS}</function>",
            f"<function=read-file>{{{ARGS}}}</function>",
            '<|python_tag|>read_file.call(path="notes.txt")',
            'read_file.call(path="notes.txt")',
            '<|python_start|>[read_file(path="notes.txt")]<|python_end|><|eot|>',
            '[read_file(path="notes.txt")]',
            Spelling('<|python_tag|>[read_file(path="notes.txt"), list_files()]', (CALL, LIST)),
            Spelling("<|python_tag|>import os\nos.listdir()", ()),
        ),
    ),
    "gemma": Source(
        "https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices; "
        "https://github.com/vllm-project/vllm/issues/54256; NousResearch/hermes-agent#7449",
        "read 2026-11-27, 2026-08-28, 2026-04-10",
        _all(
            "<start_function_call>call:read_file{path:<escape>notes.txt<escape>}<end_function_call>",
            '<|tool_call>call:read_file{path:<|"|>notes.txt<|"|>}<tool_call|>',
            '<|channel>thought\nI look.\n<channel|>call:read_file{path:<|"|>notes.txt<|"|>}',
            'call:read_file{path: "notes.txt"}',
            '<|tool_call>call:read_file(path: "notes.txt")<tool_call|>',
            f'{TICKS}tool_code\nread_file(path="notes.txt")\n{TICKS}',
            '<tool_code>\nprint(read_file(path="notes.txt"))\n</tool_code>',
            f'{TICKS}tool_code\nprint(read_file(path="notes.txt"))\n{TICKS}',
            Spelling(
                '<|tool_call>call:echo{text:{a:[1,<|"|>x "y" {z}<|"|>]}}<tool_call|>',
                ('(echo :text {"a" [1 "x \\"y\\" {z}"]})',),
            ),
            Spelling("<|tool_call>call:list_files{}<tool_call|>", (LIST,)),
            Spelling("<start_function_call>call:read_file{path:notes.txt}<end_function_call>", ()),
        ),
    ),
    "minimax": Source(
        "https://docs.vllm.ai/en/latest/api/vllm/parser/minimax_m2/ and minimax_m3/; ikawrakow/ik_llama.cpp "
        "(examples/server/function_calls.md)",
        "read 2026-11-27",
        _all(
            '<minimax:tool_call>\n<invoke name="read-file">\n<parameter name="path">notes.txt</parameter>\n</invoke>\n'
            "</minimax:tool_call>",
            '<invoke name="read_file"><parameter name="path">notes.txt</parameter></invoke>',
            '<function_calls>\n<invoke name="read-file">\n<parameter name="path">notes.txt</parameter>\n</invoke>\n'
            "</function_calls>",
            '<tool_call>\n<invoke name="read-file">\n<parameter name="path">\nnotes.txt\n</parameter>\n</invoke>\n'
            "</tool_call>",
            f"<tool_calls>\n{JSON}\n</tool_calls>",
            '<function name="read-file"><param name="path">notes.txt</param></function>',
            ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="read-file">\n]<]minimax[>[<path>notes.txt'
            "]<]minimax[>[</path>\n]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
            Spelling(
                '<minimax:tool_call>\n<invoke name="list-files">\n</invoke>\n</minimax:tool_call>', (LIST,)
            ),
            Spelling('<invoke name="read-file">\n<parameter name="path">notes.txt</invoke>', ()),
            Spelling("<minimax:tool_call>\nread-file\n</minimax:tool_call>", ()),
        ),
    ),
    "others": Source(
        "https://docs.vllm.ai/en/v0.19.1/api/vllm/tool_parsers/granite_tool_parser/ and phi4mini_tool_parser/; "
        "https://github.com/ggml-org/llama.cpp/pull/11585, /pull/15676",
        "read 2026-11-27, 2025-02-02, 2025-08-29",
        _all(
            f"<|tool_call|>[{JSON}]",
            f"<tool_call>[{JSON}]",
            f"functools[{JSON}]",
            f"<|tool_call|>[{JSON}]<|/tool_call|>",
            f"<TOOLCALL>[{JSON}]</TOOLCALL>",
            f"<think>\nI look.\n</think>\n<TOOLCALL>[{JSON}]</TOOLCALL>",
            '<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[\n  {"tool_call_id": "0", "tool_name": '
            f'"read-file", "parameters": {ARGS}}}\n]<|END_ACTION|>',
            f">>>read_file\n{ARGS}",
            f">>>all\nI look.\n>>>read_file\n{ARGS}",
            '<|tool_call_start|>[read_file(path="notes.txt")]<|tool_call_end|>',
            f'<|action_start|><|plugin|>{{"name": "read-file", "parameters": {ARGS}}}<|action_end|>',
            Spelling("<TOOLCALL>read-file</TOOLCALL>", ()),
            Spelling("<|START_ACTION|>read-file<|END_ACTION|>", ()),
        ),
    ),
}
SPELLINGS = [(name, one) for name, source in FAMILIES.items() for one in source.spellings]
