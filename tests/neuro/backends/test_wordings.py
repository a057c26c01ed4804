"""How servers say that a request is too long, limited, unpaid or filtered, in their own words."""

from __future__ import annotations

from typing import Any

import pytest

from quoth.neuro.backends.wordings import ROWS, meaning_of, window_in

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
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4_096),
    ("The prompt (total length 9000) is too long to fit into the model (context length 8192).", 8_192),
    ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8_192),
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


def test_every_row_can_be_read_and_has_words_or_a_code() -> None:
    assert all(row.words or row.code for row in ROWS)
    meaning_of({"message": "x", "code": "y"})  # compiles each
