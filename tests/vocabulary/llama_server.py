"""The real server of llama.cpp with the small model, on loopback: chat completions, Responses, Messages and
embeddings.

Knows no back end. The server runs in this process and ends with the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from quoth.neuro.backends.weights import find_weights

# Of the model's own template so small a model does not keep to the marks around a call. The server reads
# calls by the marks in its template, so this one has marks that the model can keep to, and few words: each
# costs time.
TEMPLATE = """\
{%- macro call(one) -%}
<call>{"name": "{{ one.name }}", "arguments": {{ one.arguments | tojson }}}</call>
{%- endmacro -%}
{%- if tools -%}
<|im_start|>system
Tools:
{%- for tool in tools %}
{{ tool.function.name }} {{ tool.function.parameters.properties | tojson }}
{%- endfor %}
To call one, answer with a line <call>{"name": NAME, "arguments": {…}}</call> and nothing else.<|im_end|>
{% endif -%}
{%- for message in messages -%}
{%- if message.role == "tool" -%}
<|im_start|>user
Result: {{ message.content }}
Answer in plain words now.<|im_end|>
{% else -%}
<|im_start|>{{ message.role }}
{{ message.content or "" }}
{%- for one in message.tool_calls or [] %}{{ call(one.function) }}{% endfor %}<|im_end|>
{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""


@contextmanager
def llama_server(key: str, *, reads_calls: bool = True) -> Iterator[str]:
    """The base URL of a server that wants this key. One that does not read calls takes no tools either."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(find_weights("local-small"))
    params.chat_template, params.use_jinja = (TEMPLATE, True) if reads_calls else ("", False)
    params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 2048, 1, 1
    params.sampling.temp = 0.0
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.api_keys, params.n_threads_http = [key], 2
    params.ui, params.warmup, params.fit_params, params.verbosity = False, False, False, -1
    server = xllamacpp.Server(params)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
