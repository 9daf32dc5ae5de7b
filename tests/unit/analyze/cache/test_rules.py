from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.cache_docs import PAGE, table
from tests.support.caching import asked, history

from wiretape.analyze.cache.rules import RULES, asks_long, lifetime, rule_for
from wiretape.model.call import Usage


def test_the_page_has_the_rules_as_they_are() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "python -m tests.support.cache_docs writes the table anew"


def test_every_rule_says_where_it_is_from() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.sources for rule in RULES)
    assert all(rule.minimum is None or rule.minimum % rule.step == 0 for rule in RULES)


@pytest.mark.parametrize(
    ("format", "dialect", "model", "name"),
    [
        ("openai.chat", "openai", "gpt-4.1", "openai"),
        ("openai.chat", "azure", "our-deployment", "openai"),
        ("openai.responses", "openai", "gpt-5.6-sol", "openai (gpt-5.6 and later)"),
        ("openai.responses", "openai", "gpt-5-mini", "openai"),
        ("openai.chat", "deepseek", "deepseek-chat", "deepseek"),
        ("anthropic.messages", "anthropic", "claude-opus-4-8", "anthropic"),
        ("anthropic.messages", "deepseek", "deepseek-chat", "deepseek"),
        ("anthropic.messages", "vertex", "claude-sonnet-4-5", "anthropic"),
        ("anthropic.messages", None, "claude-sonnet-4-5", "anthropic"),
        ("anthropic.messages", None, "kimi-k2", "moonshot"),
        ("bedrock.converse", "bedrock", "us.amazon.nova-lite-v1:0", "bedrock"),
        ("gemini.generate", "vertex", "gemini-2.5-flash", "gemini"),
        ("openai.chat", "openrouter", "anthropic/claude-sonnet-4.6", "anthropic"),
        ("openai.chat", "openrouter", "openai/gpt-oss-120b", "other"),
        ("openai.chat", "together", "deepseek-ai/DeepSeek-V3", "other"),
        ("openai.chat", None, "deepseek-flash", "deepseek"),
        ("openai.chat", None, "豆包·1.6", "other"),
        ("ollama.chat", None, "qwen3", "local server"),
        ("cohere.chat", None, "command-r", "cohere"),
    ],
)
def test_whose_rules_a_call_falls_under(format: str, dialect: str | None, model: str, name: str) -> None:
    call = replace(asked(1, history(1), model=model), format=format, dialect=dialect)
    assert rule_for(call).name == name


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("claude-sonnet-4-5-20250929", 1024),
        ("claude-sonnet-4-20250514", 1024),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", 4096),
        ("claude-opus-4-6", 4096),
        ("claude-opus-5", 512),
        ("claude-3-5-haiku-20241022", 2048),
        ("claude-sonnet-4-6", None),
        ("claude-opus-4-8", None),
    ],
)
def test_a_minimum_on_which_the_sources_do_not_agree_is_unknown(model: str, least: int | None) -> None:
    assert RULES[0].least(model) == least


def test_the_longer_lifetime_is_that_of_those_who_asked_for_it() -> None:
    openai, newer = RULES[2], RULES[3]
    assert (lifetime(openai, False), lifetime(openai, True), lifetime(newer, True)) == (300, 86400, 43200)
    assert lifetime(RULES[4], True) == lifetime(RULES[4], False) == 7200
    call = asked(1, history(1))
    assert not asks_long(call)
    assert asks_long(asked(1, history(1), settings={"prompt_cache_retention": "24h"}))
    assert asks_long(asked(1, history(1), settings={"prompt_cache_options": {"ttl": "12h"}}))
    assert not asks_long(asked(1, history(1), settings={"prompt_cache_options": {"ttl": "30m"}}))
    assert call.response is not None
    raw = {"cache_creation": {"ephemeral_1h_input_tokens": 7}}
    assert asks_long(replace(call, response=replace(call.response, usage=Usage(10, 0, 7, 1, raw=raw))))
    assert asks_long(asked(1, history(1), settings={"cache_control": {"ttl": "1h"}}))
