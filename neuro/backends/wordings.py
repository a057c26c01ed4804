"""The error messages of servers in one table: a request is too long, limited or unpaid; a role, a thought, an
option or tools are refused; and the reasons for the end of a reply.

Data, and the search in it; a new wording is a new row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

# The meanings of an error for a whole request.
MEANINGS = ("limited", "bill", "filtered", "long", "busy")


class Wording(NamedTuple):
    """The wording of one or several servers. An error is of this ``kind`` if its message, without commas,
    matches ``words``, or its code, type and status match ``code``; and if its param or message matches
    ``where``, the part of the request that it must be about. A group in ``words`` is a number of tokens."""

    kind: str
    who: str
    words: str = ""
    code: str = ""
    where: str = ""


_MANY = "several"
_TOOLS = r"\b(?:tools?|functions?|tool_choice|function[ _]call(?:s|ing)?)\b(?![.\[])"
_NO_TOOLS = (
    r"(?:not (?:support|enabled|permitted|allowed|available|accept)|found that support|requires"
    r"|unsupported|unknown|unrecogni[sz]ed)"
)
_SYSTEM = r"\b(?:system|developer)['\"`]?[ _](?:role|message|prompt|instruction)s?\b"
_REFUSED = r"(?:not |un)(?:be )?(?:support|allow|enabl|accept|permit)"
_UNKNOWN = (
    r"(?:\bun(?:supported|known|recogni[sz]ed|expected)|\bextra\b|\binvalid\b|\bcannot\b|\bnot (?!one of)\w)"
)
_MISSING = r"(?:missing|must be (?:passed|provided|included|sent)|is required|passed back)"
_THOUGHTS = r"(?:\breasoning_(?:content|details)\b|['\"`]reasoning['\"`])"
_IMAGES = r"(?:image|vision|multi-?modal)"
_SCHEMA = r"(?:response_?format|json_?schema|output_config|structured.outputs?|\bschema\b(?! for function))"
_SAMPLING = r"\b(?:temperature|top_[pk]|penalty)\b"

_ROWS: tuple[tuple[str, ...], ...] = (
    # Whole requests. The first match decides, because a temporary limit may also say too many tokens.
    ("long", "OpenAI", r"request too large for .{0,400}?limit:? (\d+)"),  # tokens a minute: no use to wait
    ("limited", "Bedrock", r"too many (?:tokens|requests)\W+please wait", r"throttlingexception"),
    ("limited", "DashScope", "", r"throttling(?!.*allocationquota\.freetieronly)"),
    ("limited", "GLM", "", r"\b130[2358]\b"),
    ("limited", "Kimi", "", r"rate_limit_reached|engine_overloaded"),
    ("limited", _MANY, r"rate limit\b|too many requests", r"rate_?limit|too_many_req"),
    ("bill", "OpenAI", "", r"insufficient_quota|billing|spend_limit"),
    ("bill", "Anthropic", r"credit balance is too low", r"credit_balance"),
    ("bill", "DeepSeek", r"insufficient (?:account )?(?:balance|credits?|fund\w)"),
    ("bill", "Kimi", "", r"exceeded_current_quota"),
    ("bill", "GLM", r"余额不足", r"\b1113\b"),
    ("bill", "DashScope", r"account is in good standing|欠费", r"arrearage|freetieronly"),
    ("bill", "one-api", r"用户额度不足", r"insufficient_user_quota"),
    ("bill", "xAI", r"(?:used all available credits|reached its monthly spending limit)"),
    ("bill", _MANY, "", r"insufficient_(?:balance|credit|funds)|payment_required"),
    ("filtered", "OpenAI", r"flagged as potentially violating", r"content_policy_violation"),
    ("filtered", "Azure", r"content management policy", r"content_filter|responsibleaipolicyviolation"),
    ("filtered", "DashScope", r"inappropriate content", r"data_?inspection_?failed"),
    ("filtered", "GLM", r"(?:不安全|敏感)内容", r"\b1301\b"),
    ("filtered", "Kimi", r"considered high risk"),
    ("filtered", "DeepSeek", r"content exists risk"),
    ("filtered", "xAI", r"content violates usage guidelines"),
    ("filtered", "Gemini", r"prohibited.content|blocked by .{0,30}safety"),
    ("filtered", "MiniMax", r"new_sensitive"),
    ("filtered", "OpenRouter", r"requires moderation .{0,80}flagged|your input was flagged"),
    ("long", "OpenAI", r"maximum context length is (\d+)", r"context_length_exceeded"),
    ("long", "OpenAI", r"exceeds? (?:the |this )?(?:model'?s )?context window(?: of (\d+))?"),
    ("long", "OpenAI", r"input tokens exceed the configured limit of (\d+)"),
    ("long", "OpenAI", r"string too long", r"string_above_max_length", r"^(?!.*\b(?:tools|functions)\[)"),
    ("long", "Anthropic", r"prompt is too long(?:: \d+ tokens > (\d+))?"),
    ("long", "Anthropic", r"exceed context limit: \d+ \+ \d+ > (\d+)"),
    ("long", "Anthropic", r"request exceeds the maximum size", r"request_too_large"),
    ("long", "Anthropic", "", r"model_context_window_exceeded"),
    ("long", "llama.cpp", r"available context size(?: \((\d+))?", r"exceed_context_size"),
    ("long", "llama.cpp", r"context size has been exceeded|input is too large to process"),
    ("long", "vLLM", r"context length is only (\d+)"),
    ("long", "vLLM", r"longer than the maximum model length of (\d+)"),
    ("long", "vLLM", r"too long to fit into the model \(context length (\d+)"),
    ("long", "SGLang", r"longer than the model'?s context length \((\d+)"),
    ("long", "SGLang", r"exceeds the (?:model'?s )?maximum (?:allowed |context )length(?: of)? \(?(\d+)"),
    ("long", "LM Studio", r"greater than the context length(?: \(n_keep: \d+ ?>= ?n_ctx: (\d+))?"),
    ("long", "LM Studio", r"loaded with context length of only (\d+)"),
    ("long", "LM Studio", r"reached context length of (\d+)"),
    ("long", "xAI", r"maximum prompt length is (\d+)"),
    ("long", "Kimi", r"exceeded model token limit(?::? (\d+))?"),
    ("long", "GLM", r"prompt exceeds max(?:imum)? length", r"\b1261\b"),
    ("long", "GLM", r"tokens in request more than max tokens allowed"),
    ("long", "Bedrock", r"input is too long(?: for requested model)?"),
    ("long", "Bedrock", r"too many input tokens\W+max input tokens: (\d+)"),
    ("long", "DashScope", r"range of input length should be \[\d+ (\d+)"),
    ("long", "Gemini", r"input token count.{0,20} exceeds the maximum number of tokens allowed \(?(\d+)"),
    ("long", "Gemini", r"request payload size exceeds the limit"),
    ("long", "TGI", r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= (\d+)"),
    ("long", "TGI", r"`?inputs`? must have less than (\d+) tokens"),
    ("long", "Cohere", r"number of tokens in the prompt cannot exceed (\d+)"),
    ("long", "Copilot", r"token count of \d+ exceeds the limit of (\d+)", r"max_prompt_tokens_exceeded"),
    ("long", "Mistral", r"too large for model with (\d+) maximum context length"),
    ("long", "Groq", r"reduce the length of the (?:input )?(?:messages|prompt)"),
    ("long", "Cerebras", r"current length is \d+ while limit is (\d+)"),
    ("long", "Ollama", r"input length exceeds (?:the )?(?:maximum )?context length"),
    ("long", "Ollama", r"prompt too long; exceeded (?:max )?context length"),
    ("long", "MiniMax", r"context window exceeds limit", r"\b2013\b"),
    ("long", "Fireworks", r"model maximum context length: (\d+)"),
    ("long", "Cloudflare", r"exceeded this model context window limit \((\d+)"),
    ("long", "Volcengine", r"input length \d+ exceeds the maximum length (\d+)"),
    ("long", "Volcengine", r"exceeds? max message tokens"),
    ("long", "TabbyAPI", r"greater than (?:the )?max_seq_len(?:gth)?(?: \(?(\d+))?"),
    ("long", "DS4", r"configured context size is (\d+)"),
    ("long", "SambaNova", r"maximum sequence length(?: is| of)? (\d+)"),
    ("long", "LiteLLM", r"contextwindowexceedederror"),
    ("long", "in Chinese", r"(?:上下文|输入|提示词|prompt).{0,8}(?:超长|超过|超出|过长)"),
    ("long", _MANY, r"(?:maximum|max) (?:context|model) length|(?:context|token) (?:length |limit )exceeded"),
    ("long", _MANY, r"context (?:length|window) (?:is |was )?exceeded|too many tokens"),
    ("busy", "DeepSeek", r"server is (?:over|busy)", r"insufficient_system_resource"),
    ("busy", "Groq", "", r"capacity_exceeded"),
    ("busy", _MANY, r"overloaded", r"overloaded|api_error|server_error|timeout|network_error"),
    # The maximum length of a reply, and the option for it
    (
        *("fewer-tokens", _MANY),
        r"max_(?:completion_|output_|new_)?tokens.{0,200}?"
        r"(?:at most|>|\[1(?= )|less than or equal to|<=) ?`?(\d+)",
    ),
    ("completion-tokens", "OpenAI", r"max_tokens.*max_completion_tokens"),
    ("completion-tokens", "OpenAI", "", r"unsupported_parameter", r"^'max_tokens'"),
    # Tools; some servers report it with a status of 500
    ("no-tools", "llama.cpp", r"not support tool|unsupported param: tools|tools param requires"),
    (
        *("tools", _MANY),
        rf"{_TOOLS}[^.\n]{{0,60}}{_NO_TOOLS}|{_NO_TOOLS}[^.\n]{{0,60}}{_TOOLS}",
        *("", r"^(?!'messages)"),
    ),
    # Roles
    ("alternate", _MANY, r"\b(?:roles?|messages?|requests|turns)\b[^.\n]{0,60}\balternat(?:e|es|ing|ion)\b"),
    ("alternate", "Mistral", r"unexpected role '?user'? after role '?tool"),
    (
        *("alternate", "DeepSeek"),
        r"\b(?:consecutive|successive|multiple|two) [^.\n]{0,20}\b(?:user|assistant|same role)\b"
        r"(?! (?:name|account|key)s?\b)",
    ),
    ("system", _MANY, rf"{_SYSTEM}[^.\n]{{0,40}}{_REFUSED}|{_REFUSED}\w*[^.\n]{{0,40}}{_SYSTEM}"),
    (
        *("system", "vLLM"),
        r"roles?\b[^.\n]{0,20}['\"`]system['\"`]|['\"`]system['\"`] is not |unexpected role system\b",
    ),
    (
        *("only-users", "templates"),
        r"\bonly (?:supports? )?['\"`]?user['\"`]?(?=[ ,]*(?:and|or|/|roles?\b))[^.\n]{0,40}\broles?\b"
        r"(?! (?:can|may|must))",
    ),
    # Images and the schema of an answer
    ("images", _MANY, rf"{_IMAGES}[^.\n]{{0,60}}{_UNKNOWN}|{_UNKNOWN}[^.\n]{{0,60}}{_IMAGES}"),
    ("images", "DeepSeek", r"\bcontent\b.{0,40}\bstring\b(?! too long)"),
    ("schema", _MANY, rf"{_SCHEMA}[^\n]{{0,80}}{_UNKNOWN}|{_UNKNOWN}[^\n]{{0,80}}{_SCHEMA}"),
    ("schema", "OpenAI", _UNKNOWN, "", r"^'(?:response_format|text\.format|output_config)"),
    # Thoughts that are sent back
    ("lacks-thoughts", "DeepSeek", rf"reasoning_content\b.*{_MISSING}"),
    ("lacks-signature", "Gemini", rf"{_MISSING}.{{0,20}}thought_?signature"),
    ("bad-signature", _MANY, r"(?:invalid|corrupted)\W{1,3}(?:thought.?)?signature", "", r"thought|thinking"),
    ("thoughts", _MANY, rf"{_THOUGHTS}[^.\n]{{0,60}}{_UNKNOWN}|{_UNKNOWN}[^.\n]{{0,60}}{_THOUGHTS}"),
    ("sealed", "OpenAI", "", r"invalid_encrypted_content"),
    ("seals", "OpenAI", r"encrypted content is not supported"),
    # Options: an option is refused, or its value
    (
        *("refusal", _MANY),
        r"\b(?:un(?:supported|known|recogni[sz]ed|expected|permitted)|not|cannot|can't|extra|deprecated|invalid"
        r"|forbidden|incompatible|only|remove|must|requires)\b",
        r"unsupported|unknown|forbidden|not_permitted",
    ),
    (
        *("range", _MANY),
        r"above maximum|below minimum|out of range|(?:valid|supported|allowed) range|\brange:"
        r"|(?:must|should) be (?:strictly )?(?:between|less|greater|smaller|larger|at (?:most|least)|in [(\[]"
        r"|within|positive|non-?negative|[<>])",
        *(r"(?:above|below)_m(?:ax|in)|(?:less|greater)_than", _SAMPLING),
    ),
)
ROWS = tuple(Wording(*row) for row in _ROWS)

# If a row has no size, the message may still contain it.
_SIZE = r"(?:context|model) length (?:is|of) (\d+)|context size \((\d+)|> (\d+)|context window of (\d+)"


def meaning_of(error: Mapping[str, Any]) -> str | None:
    """The one of MEANINGS that an error has; None if unknown."""
    return next((row.kind for row, _ in _found(error, *MEANINGS)), None)


def says(error: Mapping[str, Any], *kinds: str) -> bool:
    """Whether an error is of one of these kinds."""
    return any(True for _ in _found(error, *kinds))


def window_in(error: Mapping[str, Any]) -> int | None:
    """The size of the context window in tokens, if an error says that the request exceeds it; 0 if the size
    is missing, None for any other error."""
    if meaning_of(error) != "long":
        return None
    size = error.get("n_ctx")
    if isinstance(size, int) and size > 0:
        return size
    loose = _search(_SIZE, _said(error))
    matches = [*(match for _, match in _found(error, "long")), loose]
    return next((_number(match) for match in matches if match and any(match.groups())), 0)


def reply_limit(error: Mapping[str, Any]) -> int:
    """The maximum of reply tokens that a server allows, if the error says that more were requested; otherwise
    0."""
    found = next(_found(error, "fewer-tokens"), None)
    return _number(found[1]) if found and found[1] and meaning_of(error) != "long" else 0


def wait_in(error: Mapping[str, Any]) -> float:
    """The seconds after which an error says to try again; 0 if missing."""
    found = _search(r"(?:try again|retry) (?:in|after) (?:(\d+)m)?(?:(\d+(?:\.\d+)?) ?s)?", _said(error))
    minutes, seconds = found.groups() if found else (None, None)
    return 60 * float(minutes or 0) + float(seconds or 0)


def _number(match: re.Match[str]) -> int:
    return int(next(filter(None, match.groups())))


def _found(error: Mapping[str, Any], *kinds: str) -> Iterator[tuple[Wording, re.Match[str] | None]]:
    """The rows of the first of these kinds that an error matches, and the match in its words."""
    said, code = _said(error), " ".join(str(error.get(key) or "") for key in ("code", "type", "status"))
    first = ""
    for row in ROWS:
        if row.kind not in kinds or (first and row.kind != first):
            continue
        match = _search(row.words, said) if row.words else None
        if not match and not (row.code and _search(row.code, code)):
            continue
        if not row.where or _search(row.where, f"'{error.get('param')}' {said}"):
            first = row.kind
            yield row, match


def _said(error: Mapping[str, Any]) -> str:
    """The words of an error, including a provider's error inside a gateway's."""
    inner = error.get("metadata")
    raw = inner.get("raw") if isinstance(inner, Mapping) else None
    raw = raw if isinstance(raw, str | None) else json.dumps(raw)
    return f"{error.get('message') or ''} {raw or ''}".replace(",", "")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return _compiled(pattern).search(text)


# Options that do not change the meaning of a request.
OPTIONS = (
    *(
        "stream_options",
        "temperature",
        "parallel_tool_calls",
        "tool_choice",
        "cache_control",
        "include",
        "store",
    ),
)
# Keys of the tools' schemas that a model hardly needs; the door checks the arguments anyway.
KEYS = (
    *("strict", "additionalProperties", "anyOf", "oneOf", "allOf", "const", "default", "format", "type"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "prefixItems", "propertyNames"),
    *("title", "$schema", "examples"),
)


def refused_name(error: Mapping[str, Any], names: Collection[str]) -> str:
    """The first of the options or keys ``names`` that an error refuses; empty if it refuses none of them."""
    if not says(error, "refusal"):
        return ""
    words = f"'{error.get('param')}' {error.get('message')}"
    places = {name: found.start() for name in names if (found := _search(_named(name), words))}
    return min(places, key=places.__getitem__, default="")


def _named(name: str) -> str:
    """A pattern for a name in the words of an error: in quotes, or at the end of a path; without quotes only
    an option, or a name that can only be a key. ``anyOf`` may be written ``any_of``."""
    spelt = re.sub(r"(?<=[a-z])([A-Z])", r"_?\1", name).replace("$", r"\$")
    plain = name in OPTIONS or spelt != name
    begin = r"(?<!\w)" if plain else r"(?:(?<=[\"'`“.])|(?<=-> )|(?<=: ))"
    return rf"{begin}{spelt}(?![\w.\[-])"


# The ends of a reply with the reasons for each, in lower case with underscores. Any other reason is not the
# end of an answer: "load" and "unload" of Ollama, "userStopped" of LM Studio, "OTHER" of Gemini.
_REASONS = {
    "stop": "stop tool_calls tool_call tool_use function_call end_turn end_of_turn end stop_sequence "
    "stop_token eos eos_token done complete completed finished eosfound stopstringfound toolcalls",
    # Anthropic pauses a turn if its server's tools take long; the next request continues it.
    "length": "length max_tokens max_output_tokens max_completion_tokens max_length model_length token_limit "
    "model_context_window_exceeded maxpredictedtokensreached contextlengthreached pause_turn",
    "refused": "content_filter content_filtered refusal safety sensitive recitation blocklist language "
    "prohibited_content spii image_safety image_prohibited_content image_recitation model_armor "
    "guardrail_intervened moderation data_inspection_failed",
    "malformed": "malformed_function_call malformed_response malformed_tool_use malformed_model_output "
    "malformed_tool_call unexpected_tool_call too_many_tool_calls",
}
FINISHES = (None, *_REASONS)  # of an answer; None: a stream without a reason
ENDINGS = {reason: ending for ending, reasons in _REASONS.items() for reason in reasons.split()}


def ending_of(reason: Any) -> str:
    """The end of a reply: ``stop``, ``length``, ``refused``, ``malformed`` (the server could not read its
    calls), or the reason itself if it is unknown. Gateways put words and a colon before it."""
    said = str(reason)
    plain = (re.sub(r"[^a-z0-9]+", "_", one.lower()).strip("_") for one in (said, said.rpartition(":")[2]))
    return next((ENDINGS[one] for one in plain if one in ENDINGS), said)
