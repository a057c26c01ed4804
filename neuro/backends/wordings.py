"""The words by which servers say that a request is too long, limited, unpaid or filtered: one row each.

Data, and the search in it; a new wording is a new row. Knows neither requests nor sentences for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

Meaning = Literal["limited", "bill", "filtered", "long", "busy"]


class Wording(NamedTuple):
    """How one server, or several, say ``means``: ``words`` is searched in what the error says, in which no
    comma stands, ``code`` in its code, type and status. A group of ``words`` is the size of the window."""

    means: Meaning
    who: str
    words: str = ""
    code: str = ""


_MANY = "several"

# The first that matches decides: a limit for a while is worded as too many tokens too.
ROWS = (
    Wording(
        "long", "OpenAI", r"request too large for .{0,400}?limit:? (\d+)"
    ),  # tokens a minute: no use to wait
    Wording("limited", "Bedrock", r"too many (?:tokens|requests)\W+please wait", "throttlingexception"),
    Wording("limited", "DashScope", code=r"throttling(?!.*allocationquota\.freetieronly)"),
    Wording("limited", "GLM", code=r"\b130[2358]\b"),
    Wording("limited", "Kimi", code=r"rate_limit_reached|engine_overloaded"),
    Wording("limited", _MANY, r"rate limit\b|too many requests", r"rate_?limit|too_many_req"),
    Wording("bill", "OpenAI", code=r"insufficient_quota|billing|spend_limit"),
    Wording("bill", "Anthropic", r"credit balance is too low", r"credit_balance"),
    Wording("bill", "DeepSeek", r"insufficient (?:account )?(?:balance|credits?|funds)"),
    Wording("bill", "Kimi", code=r"exceeded_current_quota"),
    Wording("bill", "GLM", r"余额不足", r"\b1113\b"),
    Wording("bill", "DashScope", r"account is in good standing|欠费", r"arrearage|freetieronly"),
    Wording("bill", "one-api", r"用户额度不足", r"insufficient_user_quota"),
    Wording("bill", "xAI", r"(?:used all available credits|reached its monthly spending limit)"),
    Wording("bill", _MANY, code=r"insufficient_(?:balance|credit|funds)|payment_required"),
    Wording("filtered", "OpenAI", r"flagged as potentially violating", r"content_policy_violation"),
    Wording(
        "filtered", "Azure", r"content management policy", r"content_filter|responsibleaipolicyviolation"
    ),
    Wording("filtered", "DashScope", r"inappropriate content", r"data_?inspection_?failed"),
    Wording("filtered", "GLM", r"(?:不安全|敏感)内容", r"\b1301\b"),
    Wording("filtered", "Kimi", r"considered high risk"),
    Wording("filtered", "DeepSeek", r"content exists risk"),
    Wording("filtered", "xAI", r"content violates usage guidelines"),
    Wording("filtered", "Gemini", r"prohibited.content|blocked by .{0,30}safety"),
    Wording("filtered", "MiniMax", r"new_sensitive"),
    Wording("filtered", "OpenRouter", r"requires moderation .{0,80}flagged|your input was flagged"),
    Wording("long", "OpenAI", r"maximum context length is (\d+)", r"context_length_exceeded"),
    Wording("long", "OpenAI", r"exceeds? (?:the |this )?(?:model'?s )?context window(?: of (\d+))?"),
    Wording("long", "OpenAI", r"input tokens exceed the configured limit of (\d+)"),
    Wording("long", "OpenAI", r"maximum string length|string too long", r"string_above_max_length"),
    Wording("long", "Anthropic", r"prompt is too long(?:: \d+ tokens > (\d+))?"),
    Wording("long", "Anthropic", r"exceed context limit: \d+ \+ \d+ > (\d+)"),
    Wording("long", "Anthropic", r"request exceeds the maximum size", r"request_too_large"),
    Wording("long", "Anthropic", code=r"model_context_window_exceeded"),
    Wording("long", "llama.cpp", r"available context size(?: \((\d+))?", r"exceed_context_size"),
    Wording("long", "llama.cpp", r"context size has been exceeded|input is too large to process"),
    Wording("long", "vLLM", r"context length is only (\d+)"),
    Wording("long", "vLLM", r"longer than the maximum model length of (\d+)"),
    Wording("long", "vLLM", r"too long to fit into the model \(context length (\d+)"),
    Wording("long", "SGLang", r"longer than the model'?s context length \((\d+)"),
    Wording(
        "long", "SGLang", r"exceeds the (?:model'?s )?maximum (?:allowed |context )length(?: of)? \(?(\d+)"
    ),
    Wording("long", "LM Studio", r"greater than the context length(?: \(n_keep: \d+ ?>= ?n_ctx: (\d+))?"),
    Wording("long", "LM Studio", r"loaded with context length of only (\d+)"),
    Wording("long", "LM Studio", r"reached context length of (\d+)"),
    Wording("long", "xAI", r"maximum prompt length is (\d+)"),
    Wording("long", "Kimi", r"exceeded model token limit(?::? (\d+))?"),
    Wording("long", "GLM", r"prompt exceeds max(?:imum)? length", r"\b1261\b"),
    Wording("long", "GLM", r"tokens in request more than max tokens allowed"),
    Wording("long", "Bedrock", r"input is too long(?: for requested model)?"),
    Wording("long", "Bedrock", r"too many input tokens\W+max input tokens: (\d+)"),
    Wording("long", "DashScope", r"range of input length should be \[\d+ (\d+)"),
    Wording(
        "long", "Gemini", r"input token count.{0,20} exceeds the maximum number of tokens allowed \(?(\d+)"
    ),
    Wording("long", "Gemini", r"request payload size exceeds the limit"),
    Wording("long", "TGI", r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= (\d+)"),
    Wording("long", "TGI", r"`?inputs`? must have less than (\d+) tokens"),
    Wording("long", "Cohere", r"number of tokens in the prompt cannot exceed (\d+)"),
    Wording(
        "long", "Copilot", r"token count of \d+ exceeds the limit of (\d+)", r"max_prompt_tokens_exceeded"
    ),
    Wording("long", "Mistral", r"too large for model with (\d+) maximum context length"),
    Wording("long", "Groq", r"reduce the length of the (?:input )?(?:messages|prompt)"),
    Wording("long", "Cerebras", r"current length is \d+ while limit is (\d+)"),
    Wording("long", "Ollama", r"input length exceeds (?:the )?(?:maximum )?context length"),
    Wording("long", "Ollama", r"prompt too long; exceeded (?:max )?context length"),
    Wording("long", "MiniMax", r"context window exceeds limit", r"\b2013\b"),
    Wording("long", "Fireworks", r"model maximum context length: (\d+)"),
    Wording("long", "Cloudflare", r"exceeded this model context window limit \((\d+)"),
    Wording("long", "Volcengine", r"input length \d+ exceeds the maximum length (\d+)"),
    Wording("long", "Volcengine", r"exceeds? max message tokens"),
    Wording("long", "TabbyAPI", r"greater than (?:the )?max_seq_len(?:gth)?(?: \(?(\d+))?"),
    Wording("long", "DS4", r"configured context size is (\d+)"),
    Wording("long", "SambaNova", r"maximum sequence length(?: is| of)? (\d+)"),
    Wording("long", "LiteLLM", r"contextwindowexceedederror"),
    Wording("long", "in Chinese", r"(?:上下文|输入|提示词|prompt).{0,8}(?:超长|超过|超出|过长)"),
    Wording(
        "long",
        _MANY,
        r"(?:maximum|max) (?:context|model) length|(?:context|token) (?:length |limit )exceeded",
    ),
    Wording("long", _MANY, r"context (?:length|window) (?:is |was )?exceeded|too many tokens"),
    Wording("busy", "DeepSeek", r"server is (?:over|busy)", r"insufficient_system_resource"),
    Wording("busy", "Groq", code=r"capacity_exceeded"),
    Wording("busy", _MANY, r"overloaded", r"overloaded|api_error|server_error|timeout|network_error"),
)

# Where a row has no size of its own, the message may still say it.
_SIZE = r"(?:context|model) length (?:is|of) (\d+)|context size \((\d+)|> (\d+)|context window of (\d+)"


def meaning_of(error: Mapping[str, Any]) -> Meaning | None:
    """What an error says, if it is one of the meanings of ROWS."""
    found = next(_found(error), None)
    return None if found is None else found[0].means


def window_in(error: Mapping[str, Any]) -> int | None:
    """The size of the context window, if an error says that the request exceeds it: 0 if it does not say the
    size, None for any other error."""
    if meaning_of(error) != "long":
        return None
    size = error.get("n_ctx")
    if isinstance(size, int) and size > 0:
        return size
    for _, match in _found(error):
        if match is not None and any(match.groups()):
            return int(next(filter(None, match.groups())))
    loose = _search(_SIZE, _said(error))
    return int(next(filter(None, loose.groups()))) if loose else 0


def wait_in(error: Mapping[str, Any]) -> float:
    """The seconds after which an error says to try again; 0 if it does not say."""
    found = _search(r"(?:try again|retry) (?:in|after) (?:(\d+)m)?(?:(\d+(?:\.\d+)?) ?s)?", _said(error))
    minutes, seconds = found.groups() if found else (None, None)
    return 60 * float(minutes or 0) + float(seconds or 0)


def _found(error: Mapping[str, Any]) -> Iterator[tuple[Wording, re.Match[str] | None]]:
    """The rows of one meaning that an error matches, and where in its words."""
    said, code = _said(error), " ".join(str(error.get(key) or "") for key in ("code", "type", "status"))
    first: Meaning | None = None
    for row in ROWS:
        match = _search(row.words, said) if row.words else None
        if (match or (row.code and _search(row.code, code))) and first in (None, row.means):
            first = row.means
            yield row, match


def _said(error: Mapping[str, Any]) -> str:
    """The words of an error, and of the provider's error in that of a gateway."""
    inner = error.get("metadata")
    raw = inner.get("raw") if isinstance(inner, Mapping) else None
    raw = raw if isinstance(raw, str | None) else json.dumps(raw)
    return f"{error.get('message') or ''} {raw or ''}".replace(",", "")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return _compiled(pattern).search(text)
