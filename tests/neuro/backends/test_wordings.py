"""How servers say that a request is too long, limited, unpaid or filtered, in their own words."""

from __future__ import annotations

from typing import Any

import pytest
from sentences import IS_LONGER_THAN

from quoth.neuro.backends import wordings
from quoth.neuro.backends.wordings import ROWS, Wording, meaning_of, says, window_in

# The words as the providers document them, or as users report them; the size that they name, else 0.
TOO_LONG: list[tuple[str, int]] = [
    ("This model's maximum context length is 65536 tokens. However, you requested 69648 tokens", 65_536),
    (
        "This model's maximum context length is 131072 tokens. However, you requested 128000 output tokens "
        "and your prompt contains at least 3073 input tokens. (parameter=input_tokens, value=3073)",
        131_072,
    ),
    ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300001.", 272_000),
    (
        "Request too large for gpt-5-mini in organization org-x on tokens per min (TPM): Limit 30000, "
        "Requested 31234. The input or output tokens must be reduced in order to run successfully.",
        30_000,
    ),
    (
        "Invalid 'messages[3].content': string too long. Expected a string with maximum length 10485760, but "
        "got a string with length 11000000 instead.",
        0,
    ),
    ("prompt is too long: 213462 tokens > 200000 maximum", 200_000),
    ("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease it", 200_000),
    ("Request exceeds the maximum size", 0),
    ("the request exceeds the available context size. try increasing the context size", 0),
    ("input is too large to process. increase the physical batch size", 0),
    (
        "You passed 131073 input tokens and requested 4096 output tokens. However, the model's context "
        "length is only 131072 tokens, resulting in a maximum input length of 126976 tokens.",
        131_072,
    ),
    (f"The decoder prompt (length 5000) {IS_LONGER_THAN} the maximum model length of 4096.", 4_096),
    ("The prompt (total length 9000) is too long to fit into the model (context length 8192).", 8_192),
    (f"The input (9000 tokens) {IS_LONGER_THAN} the model's context length (8192 tokens).", 8_192),
    ("Requested token count exceeds the model's maximum context length of 8192 tokens.", 8_192),
    (
        "Input length (9000 tokens) exceeds the maximum allowed length (8191 tokens). Use a shorter input",
        8_191,
    ),
    (
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: "
        "10978>= n_ctx: 8192). Try to load the model with a larger context length",
        8_192,
    ),
    ("The number of tokens to keep from the initial prompt is greater than the context length.", 0),
    (
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with "
        "context length of only 4096 tokens, which is not enough.",
        4_096,
    ),
    ("Reached context length of 4096 tokens with model (arch: llama) that does not support it", 4_096),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
    ("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", 262_144),
    ("Prompt exceeds max length", 0),
    ("tokens in request more than max tokens allowed", 0),
    ("Input is too long for requested model.", 0),
    ("Too many input tokens. Max input tokens: 8192, request input token count: 9000", 8_192),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]", 98_304),
    ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1_048_575),
    ("The input token count exceeds the maximum number of tokens allowed 1048575.", 1_048_575),
    ("Request payload size exceeds the limit: 20971520 bytes.", 0),
    ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", 4_096),
    ("Input validation error: `inputs` must have less than 1024 tokens. Given: 1500", 1_024),
    (
        "too many tokens: the total number of tokens in the prompt cannot exceed 4081 - received 4292. Try "
        "using a shorter prompt.",
        4_081,
    ),
    ("prompt token count of 391491 exceeds the limit of 128000", 128_000),
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        32_768,
    ),
    ("Please reduce the length of the messages or completion.", 0),
    (
        "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
        8_192,
    ),
    ("the input length exceeds the context length", 0),
    ("prompt too long; exceeded max context length by 100 tokens", 0),
    ("invalid params, context window exceeds limit", 0),
    ("The prompt is too long: 150000, model maximum context length: 131071", 131_071),
    (
        "The estimated number of input and maximum output tokens (9000) exceeded this model context window "
        "limit (7968).",
        7_968,
    ),
    ("Input length 40000 exceeds the maximum length 32768", 32_768),
    ("Total tokens of image and text exceed max message tokens", 0),
    ("Prompt length 9000 is greater than max_seq_len 8192", 8_192),
    ("Prompt has 32769 tokens, but the configured context size is 32768 tokens", 32_768),
    ("litellm.ContextWindowExceededError: OpenAIException", 0),
    ("输入长度超过模型上限", 0),
    ("Prompt 超长", 0),
    ("context length exceeded", 0),
    ("Token limit exceeded", 0),
]


@pytest.mark.parametrize(("words", "window"), TOO_LONG)
def test_a_request_that_is_too_long_is_known_in_the_words_of_each_server(words: str, window: int) -> None:
    assert window_in({"message": words}) == window


CODES: list[tuple[dict[str, Any], str]] = [
    ({"code": "context_length_exceeded"}, "long"),
    ({"code": "model_max_prompt_tokens_exceeded"}, "long"),
    ({"type": "request_too_large"}, "long"),
    ({"code": "string_above_max_length"}, "long"),
    ({"code": "1261", "message": "Prompt 过长"}, "long"),
    ({"type": "exceed_context_size_error", "n_ctx": 4096}, "long"),
    (
        {"code": "ThrottlingException", "message": "Too many tokens, please wait before trying again."},
        "limited",
    ),
    ({"code": "Throttling.RateQuota", "message": "Requests rate limit exceeded"}, "limited"),
    ({"code": 1302}, "limited"),
    ({"type": "engine_overloaded_error"}, "limited"),
    ({"type": "rate_limit_error", "message": "too many tokens per minute"}, "limited"),
    ({"type": "insufficient_quota", "message": "You exceeded your current quota."}, "bill"),
    ({"type": "exceeded_current_quota_error"}, "bill"),
    ({"code": "1113", "message": "余额不足或无可用资源包,请充值。"}, "bill"),
    ({"code": "Arrearage"}, "bill"),
    ({"code": "insufficient_user_quota"}, "bill"),
    ({"message": "Insufficient Balance"}, "bill"),
    (
        {"message": "Your team has either used all available credits or reached its monthly spending limit."},
        "bill",
    ),
    ({"code": "content_filter", "message": "The response was filtered"}, "filtered"),
    (
        {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."},
        "filtered",
    ),
    ({"message": "Content Exists Risk"}, "filtered"),
    ({"message": "The request was rejected because it was considered high risk"}, "filtered"),
    ({"message": "Content violates usage guidelines."}, "filtered"),
    ({"type": "overloaded_error"}, "busy"),
    ({"code": "capacity_exceeded"}, "busy"),
    (
        {
            "message": "Provider returned error",
            "metadata": {"raw": '{"message":"prompt is too long: 9 tokens > 8"}'},
        },
        "long",
    ),
]


@pytest.mark.parametrize(("error", "means"), CODES)
def test_what_an_error_means_is_known_by_its_code_or_its_words(error: dict[str, Any], means: str) -> None:
    assert meaning_of(error) == means


@pytest.mark.parametrize(
    "words",
    [
        "",
        "context too long to explain",
        "unknown field context_length",
        "max_tokens is too large: 99",
        "The maximum tokens you requested exceeds the model limit of 8192.",
        "Range of max_tokens should be [1, 8192]",
        "no model",
        "temperature must be a number",
        "You exceeded your current quota, please check your plan and billing details.",  # Gemini, each minute
    ],
)
def test_no_other_error_is_taken_for_one(words: str) -> None:
    assert meaning_of({"message": words, "code": "invalid"}) is None


# For each row something that it means, and something near that it must not be taken for. A text is a message.
PAIRS: list[tuple[Any, Any]] = [
    # long, as a limit a minute
    (
        "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 31234.",
        "Request too large for a file name: 30000 characters.",
    ),
    # limited
    ("Too many tokens, please wait before trying again.", "Too many files, please choose fewer."),
    ({"code": "ThrottlingException"}, {"code": "ValidationException"}),
    ({"code": "Throttling.RateQuota"}, {"code": "Throttling.AllocationQuota.FreeTierOnly"}),
    ({"code": 1302}, {"code": 1301}),
    ({"type": "rate_limit_reached_error"}, {"type": "exceeded_current_quota_error"}),
    ("Rate limit reached for requests", "rate limited models are listed below"),
    ({"type": "rate_limit_error"}, {"type": "invalid_request_error"}),
    # bill
    ({"code": "insufficient_quota"}, {"code": "insufficient_permissions"}),
    ("Your credit balance is too low to access the API.", "Your credit balance is fine."),
    ({"code": "credit_balance_too_low"}, {"code": "credit_card_field"}),
    ("Insufficient Balance", "Insufficient permissions for this balance sheet"),
    ({"type": "exceeded_current_quota_error"}, {"type": "exceeded_token_limit_error"}),
    ("余额不足或无可用资源包,请充值。", "余额查询成功"),
    ({"code": "1113"}, {"code": "11130"}),
    ("Access denied, please make sure your account is in good standing.", "Access denied for this account."),
    ({"code": "Arrearage"}, {"code": "AccessDenied"}),
    ("用户额度不足", "用户不存在"),
    ({"code": "insufficient_user_quota"}, {"code": "user_quota_updated"}),
    (
        "Your team has used all available credits or reached its monthly spending limit.",
        "Your team has credits that are available.",
    ),
    ({"code": "payment_required"}, {"code": "payment_method_listed"}),
    # filtered
    ("Your prompt was flagged as potentially violating our usage policy.", "The file was flagged as binary."),
    ({"code": "content_policy_violation"}, {"code": "network_policy_violation"}),
    ("The response was filtered due to Azure's content management policy.", "No content management here."),
    ({"code": "content_filter"}, {"code": "content_type"}),
    ("Output data may contain inappropriate content.", "The content type is inappropriate."),
    ({"code": "DataInspectionFailed"}, {"code": "DataUploadFailed"}),
    ("系统检测到输入或生成内容可能包含不安全或敏感内容", "大小写敏感"),
    ({"code": "1301"}, {"code": "1302"}),
    ("The request was rejected because it was considered high risk", "This tool has a high risk level."),
    ("Content Exists Risk", "Content exists already"),
    ("Content violates usage guidelines.", "Content violates the schema."),
    ("The prompt was blocked by the safety settings: PROHIBITED_CONTENT", "The address was blocked."),
    ("input new_sensitive", "input is case-sensitive"),
    ("anthropic/claude requires moderation on Azure. Your input was flagged", "requires a moderator"),
    # long
    ("This model's maximum context length is 65536 tokens.", "The maximum file length is 65536 bytes."),
    ({"code": "context_length_exceeded"}, {"code": "rate_exceeded"}),
    ("Your input exceeds the context window of this model.", "Your input does not fit the window of a shop."),
    (
        "Input tokens exceed the configured limit of 272000 tokens.",
        "Output tokens exceed the configured limit of 4096 tokens.",
    ),
    (
        "Invalid 'messages[3].content': string too long. Expected a string with maximum length 10485760.",
        "Invalid 'tools[0].function.description': string too long. Expected a string of length 1024.",
    ),
    (
        {"code": "string_above_max_length", "message": "", "param": "input"},
        {"code": "string_above_max_length", "message": "", "param": "tools[0].function.name"},
    ),
    ("prompt is too long: 213462 tokens > 200000 maximum", "The name of the prompt is long."),
    (
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000",
        "the limit of contexts is 3",
    ),
    ("Request exceeds the maximum size", "The image exceeds the maximum size"),
    ({"type": "request_too_large"}, {"type": "request_malformed"}),
    ({"code": "model_context_window_exceeded"}, {"code": "model_not_found"}),
    ("the request exceeds the available context size (4096)", "the size of the context is unknown"),
    ({"type": "exceed_context_size_error"}, {"type": "server_error"}),
    ("input is too large to process. increase the physical batch size", "input is not too large"),
    ("the model's context length is only 131072 tokens", "the context length is set by the user"),
    ("longer than the maximum model length of 4096.", "longer than the maximum name length of 64."),
    ("too long to fit into the model (context length 8192).", "too long to fit into the log"),
    (f"{IS_LONGER_THAN} the model's context length (8192 tokens).", f"{IS_LONGER_THAN} the model's name"),
    (
        "Requested token count exceeds the model's maximum context length of 8192 tokens.",
        "The description exceeds the maximum of 1024 characters.",
    ),
    (
        "tokens to keep from the initial prompt is greater than the context length (n_keep: 9>= n_ctx: 8)",
        "the temperature is greater than the limit",
    ),
    ("the model is loaded with context length of only 4096 tokens", "the model is loaded"),
    ("Reached context length of 4096 tokens", "Reached the end of the stream"),
    ("This model's maximum prompt length is 131072 but the request contains 537812", "maximum prompts: 3"),
    ("Your request exceeded model token limit: 262144", "Your request exceeded the time limit"),
    ("Prompt exceeds max length", "The name exceeds max length"),
    ({"code": "1261"}, {"code": "1210"}),
    ("tokens in request more than max tokens allowed", "max_tokens is more than is allowed"),
    ("Input is too long for requested model.", "The field is too long."),
    ("Too many input tokens. Max input tokens: 8192", "Too many input files."),
    ("Range of input length should be [1, 98304]", "Range of max_tokens should be [1, 8192]"),
    (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "The number of functions exceeds the maximum allowed (128).",
    ),
    ("Request payload size exceeds the limit: 20971520 bytes.", "The number of images exceeds the limit."),
    ("`inputs` tokens + `max_new_tokens` must be <= 4096.", "`best_of` must be <= 4096."),
    ("`inputs` must have less than 1024 tokens.", "`stop` must have less than 4 entries."),
    (
        "the total number of tokens in the prompt cannot exceed 4081",
        "the number of tools in the request cannot exceed 128",
    ),
    ("prompt token count of 391491 exceeds the limit of 128000", "tool count exceeds the limit of 128"),
    ({"code": "model_max_prompt_tokens_exceeded"}, {"code": "model_max_tools_exceeded"}),
    ("too large for model with 32768 maximum context length", "too large for an e-mail"),
    ("Please reduce the length of the messages or completion.", "Please reduce the length of the name."),
    ("Current length is 9000 while limit is 8192", "Current limit is 8192"),
    ("the input length exceeds the context length", "the stop sequence exceeds its length"),
    ("prompt too long; exceeded max context length by 100 tokens", "prompt is not known"),
    ("invalid params, context window exceeds limit", "invalid params, top_p exceeds limit"),
    ({"code": 2013}, {"code": 20132}),
    ("model maximum context length: 131071", "model maximum batch: 131071"),
    ("exceeded this model context window limit (7968).", "exceeded this account's limit (7968)."),
    ("Input length 40000 exceeds the maximum length 32768", "Name length 80 exceeds the maximum of 64"),
    ("Total tokens of image and text exceed max message tokens", "The messages exceed 100"),
    ("Prompt length 9000 is greater than max_seq_len 8192", "top_p is greater than 1"),
    ("the configured context size is 32768 tokens", "the configured model is gone"),
    ("maximum sequence length is 4096", "maximum number of stop sequences is 4"),
    ("litellm.ContextWindowExceededError: OpenAIException", "litellm.BadRequestError: OpenAIException"),
    ("输入长度超过模型上限", "输入不是字符串"),
    ("context length exceeded", "the length of the context is not a number"),
    ("Context window is exceeded", "the context window was not given"),
    # busy
    ("Server is overloaded or not ready yet.", "The server is yours."),
    ({"code": "insufficient_system_resource"}, {"code": "insufficient_scope"}),
    ({"code": "capacity_exceeded"}, {"code": "capacity_unknown"}),
    ("Overloaded", "The operator + cannot be overridden."),
    ({"type": "overloaded_error"}, {"type": "not_found_error"}),
    # how long a reply may be
    (
        "max_tokens is too large: 16384. This model supports at most 4096 completion tokens",
        "max_tokens is not known",
    ),
    ("'max_tokens' is not supported. Use 'max_completion_tokens' instead.", "'max_tokens' must be a number."),
    (
        {"code": "unsupported_parameter", "param": "max_tokens"},
        {"code": "unsupported_parameter", "param": "stop"},
    ),
    # tools
    ("tools param requires --jinja flag", "the tool shed is on fire"),
    ("this model does not support tools", "Unsupported type in tools[0].function.parameters"),
    (
        {"message": "unknown function", "param": "tools"},
        {"message": "unknown function", "param": "messages[3].tool_calls[0]"},
    ),
    # roles
    (
        'messages: roles must alternate between "user" and "assistant"',
        "The pattern must alternate its letters.",
    ),
    ("Unexpected role 'user' after role 'tool'", "Unexpected token 'user' after 'tool'"),
    (
        "deepseek-reasoner does not support successive user or assistant messages",
        "two user names are the same",
    ),
    ("The system message is not allowed for this model.", "The system message is too long."),
    ("System role not supported", "The role of the system is explained in the manual."),
    ("messages.0.role: 'system' is not one of ['user', 'assistant']", "'system' was your first message"),
    ("Only user and assistant roles are supported!", "Only users with the admin role may do this."),
    # images and schemas
    ("This model does not support image input", "The image is 8x6 pixels."),
    ("invalid type: content should be a string", "The content is empty."),
    ("json_schema is not supported by this model", "Invalid schema for function 'look'"),
    (
        {"param": "response_format", "message": "Unsupported value."},
        {"param": "messages", "message": "Unsupported value."},
    ),
    # thoughts
    (
        "thinking is enabled but reasoning_content is missing in assistant tool call message",
        "reasoning_content is too long",
    ),
    (
        "Function call is missing a thought_signature in functionCall parts.",
        "The thought_signature was read.",
    ),
    (
        "Invalid `signature` in `thinking` block",
        "Invalid signature: the request was signed with another key.",
    ),
    ("property 'reasoning_content' is unsupported", "the value of 'reasoning' is not one of low, high"),
    ({"code": "invalid_encrypted_content"}, {"code": "invalid_content"}),
    ("Encrypted content is not supported with this model.", "Encrypted content was received."),
    # values of options
    (
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2.",
        "Unsupported value: 'temperature' does not support 0 with this model.",
    ),
    (
        {"param": "temperature", "code": "decimal_above_max_value"},
        {"param": "max_tokens", "code": "decimal_above_max_value"},
    ),
    ("`temperature` must be strictly positive", "`stop` must be strictly positive"),
]
# Any other refusal is one too.
REFUSALS: list[tuple[Any, Any]] = [
    ("Unsupported parameter: 'store'", "The temperature of the room is 20."),
    ({"code": "unsupported_parameter"}, {"code": "parameter_logged"}),
]


def as_error(told: Any) -> dict[str, Any]:
    return {"message": told} if isinstance(told, str) else told


def is_of(row: Wording, told: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(wordings, "ROWS", (row,))
    return says(as_error(told), row.kind)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.kind} {row.who} {place}" for place, row in enumerate(ROWS)])
def test_each_row_means_one_thing_and_not_its_neighbour(
    row: Wording, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = REFUSALS if row.kind == "refusal" else PAIRS
    near = [neighbour for example, neighbour in pairs if is_of(row, example, monkeypatch)]
    assert near
    taken = [neighbour for neighbour in near if is_of(row, neighbour, monkeypatch)]
    assert taken == []
    for part in filter(None, (row.words, row.code)):  # each can be met alone
        alone = row._replace(**({"code": ""} if part == row.words else {"words": ""}))
        assert any(is_of(alone, example, monkeypatch) for example, _ in pairs), part


def test_no_neighbour_means_what_its_example_does() -> None:
    wrong = [
        (example, neighbour)
        for example, neighbour in PAIRS
        for kind in {row.kind for row in ROWS} - {"refusal"}
        if says(as_error(example), kind) and says(as_error(neighbour), kind)
    ]
    assert wrong == []
