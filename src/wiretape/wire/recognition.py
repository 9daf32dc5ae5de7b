"""Recognizes the format of a request or response: by the end of the path, then the body, then the response.

The host only hints at a dialect, because one host serves several formats.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from wiretape.model.http import Headers, Request
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.wire.lenient import body_json, items, obj, string

# Paths of other APIs, whatever their bodies look like.
_OTHER = re.compile(
    r"(?:/(?:embeddings?|embed|contextualizedembeddings|rerank|moderations|classifications|batches|decisions|systemone"
    r"|fim/completions|infill|tokenize|detokenize|apply-template|invocations-log|count-tokens|control|cancel"
    r"|api/chat|api/generate|v2/chat|converse|converse-stream|interactions|realtime|deferred-completion/[^/]+"
    r"|assistants|runs|threads(?:/[^/]+(?:/.*)?)?|chat/completions/[^/]+/messages|conversations(?:/.*)?"
    r"|cachedContents(?:/[^/]+)?)"
    r"|:(?:embedContent|batchEmbedContents|predict|countTokens|computeTokens|generateContent|streamGenerateContent))$"
)
# Paths that belong to one format: no other format bids by the body.
_UNIQUE_PATHS = (
    "/chat/completions",
    "/chat/completions/input_tokens",
    "/v1/responses",
    "/responses/compact",
    "/v1/messages",
    "/messages/count_tokens",
)
# Inferences without a conversation, whose bodies no format reads: audio, images, videos.
_MEDIA = re.compile(
    r"/(?:audio/(?:transcriptions|translations|speech)|images/(?:generations|edits|variations)|videos)/?$"
)
_AGENT_RUNTIME = re.compile(
    r"/(?:agents|flows)/[^/]+/(?:agentAliases|aliases)/[^/]+(?:/sessions/[^/]+/text)?$|/agents/[^/]+$"
    r"|/retrieveAndGenerate(?:Stream)?$|/optimize-prompt$"
)
_INSPECTED = 8  # messages inspected at each end of a conversation
_HOSTS = (
    ("api.deepseek.com", "deepseek"),
    ("openrouter.ai", "openrouter"),
    ("api.groq.com", "groq"),
    ("api.x.ai", "xai"),
    ("api.mistral.ai", "mistral"),
    ("api.moonshot.", "moonshot"),
    ("api.kimi.com", "moonshot"),
    ("api.z.ai", "zhipu"),
    ("bigmodel.cn", "zhipu"),
    ("dashscope", "qwen"),
    ("volces.com", "ark"),
    ("openai.azure.com", "azure"),
    ("services.ai.azure.com", "azure"),
    ("cognitiveservices.azure.com", "azure"),
    ("databricks", "databricks"),
    ("snowflakecomputing.com", "snowflake"),
    ("perplexity.ai", "perplexity"),
    ("together.xyz", "together"),
    ("together.ai", "together"),
    ("huggingface.co", "huggingface"),
    ("cerebras.ai", "cerebras"),
    ("fireworks.ai", "fireworks"),
    ("deepinfra.com", "deepinfra"),
    ("cloudflare.com", "cloudflare"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("aiplatform.googleapis.com", "vertex"),
    ("cloudcode-pa.googleapis.com", "code-assist"),
    ("githubcopilot.com", "copilot"),
    ("amazonaws.com", "bedrock"),
    ("api.aws", "bedrock"),
    ("chatgpt.com", "chatgpt"),
    ("api.openai.com", "openai"),
    ("api.anthropic.com", "anthropic"),
)
_RESPONSES_ITEMS = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "item_reference", "compaction"}
    | {"custom_tool_call", "custom_tool_call_output", "compaction_trigger", "local_shell_call_output"}
)
_RESPONSES_KEYS = frozenset({"instructions", "previous_response_id", "conversation", "reasoning", "store", "include"})
_INTERACTION_KEYS = frozenset({"previous_interaction_id", "system_instruction", "generation_config"})
_STEPS = ("user_input", "model_output", "function_result")
_CONVERSE_KEYS = frozenset({"inferenceConfig", "toolConfig", "additionalModelRequestFields"})
_CONVERSE_PARTS = ("text", "toolUse", "toolResult", "cachePoint", "reasoningContent")
_ANTHROPIC_PARTS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_OPENAI_ONLY = frozenset(
    {"frequency_penalty", "max_completion_tokens", "max_tokens", "n", "parallel_tool_calls", "presence_penalty"}
    | {"reasoning_effort", "response_format", "seed", "stream_options", "temperature", "tool_choice", "top_p", "user"}
)


@lru_cache(1024)
def path_of(url: str) -> str:
    """Return the URL's path without query and trailing slash."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = url.partition("?")[0]
    return unquote(path).rstrip("/")


@lru_cache(1024)
def host_dialect(url: str) -> str | None:
    try:
        host = urlsplit(url).netloc
    except ValueError:
        return None
    # A reverse route has the upstream's host as a path segment.
    where = host if not host.startswith(("127.0.0.1", "localhost")) else url
    return next((dialect for part, dialect in _HOSTS if part in where), None)


def is_agent_runtime(request: Request) -> bool:
    """Return whether a request invokes an agent, a flow or a knowledge base of Bedrock, which runs models itself."""
    return _AGENT_RUNTIME.search(path_of(request.url)) is not None


def is_media_inference(request: Request) -> bool:
    """Return whether a request generates, edits or transcribes audio, images or videos."""
    return is_post(request) and _MEDIA.search(path_of(request.url)) is not None


def is_post(request: Request) -> bool:
    return request.method.upper() == "POST"


def is_other(request: Request) -> bool:
    """Return whether the path is known not to be a conversation."""
    return bool(_OTHER.search(path_of(request.url)))


def shown_format(request: Request) -> str | None:
    """Return the format of a request by its body, if the path does not determine it."""
    path = path_of(request.url)
    if not is_post(request) or path.endswith(_UNIQUE_PATHS) or _OTHER.search(path):
        return None
    return body_format(body_json(request.body), request.headers)


def body_format(body: Json, headers: Headers) -> str | None:
    """Return the format that a request's body shows by its keys, or None."""
    if not isinstance(body, dict) or "jsonrpc" in body:
        return None
    if _has_contents(body) or _has_contents(obj(body.get("request"))):
        return "gemini.generate"
    messages = body.get("messages")
    if isinstance(messages, list):
        return _messages_format(body, messages, headers)
    if "input" in body and not ("questions" in body or "documents" in body):
        return _input_format(body)
    return None


def _has_contents(body: JsonObject) -> bool:
    """Return whether a body has Gemini's `contents`: objects with parts, which other services with this member lack."""
    contents = body.get("contents")
    listed = contents if isinstance(contents, list) else [contents]
    return bool(listed) and all("parts" in obj(content) for content in listed[:_INSPECTED])


def _messages_format(body: JsonObject, messages: list[Json], headers: Headers) -> str | None:
    if "anthropic_version" in body:
        return "anthropic.messages"
    if len(messages) > 2 * _INSPECTED:
        messages = messages[:_INSPECTED] + messages[-_INSPECTED:]
    if not messages or not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
        return None
    parts = [p for m in messages for p in items(m.get("content")) if isinstance(p, dict)]
    if not _CONVERSE_KEYS.isdisjoint(body) or any(
        "type" not in part and any(key in part for key in _CONVERSE_PARTS) for part in parts
    ):
        return "bedrock.converse"
    if _is_anthropic(body, parts, headers):
        return "anthropic.messages"
    if _is_ollama(body, messages):
        return "ollama.chat"
    return "openai.chat" if "model" in body or "model_meta" in body else None


def _is_anthropic(body: JsonObject, parts: list[JsonObject], headers: Headers) -> bool:
    if "anthropic-version" in headers or "system" in body:
        return True
    if any("input_schema" in obj(tool) for tool in items(body.get("tools"))):
        return True
    return ("cache_control" in body and "max_tokens" in body) or any(
        string(p.get("type")) in _ANTHROPIC_PARTS for p in parts
    )


def _is_ollama(body: JsonObject, messages: list[JsonObject]) -> bool:
    if not _OPENAI_ONLY.isdisjoint(body):
        return False
    if isinstance(body.get("options"), dict) or "keep_alive" in body or "think" in body:
        return True
    return any("tool_name" in m or isinstance(m.get("images"), list) for m in messages)


def _input_format(body: JsonObject) -> str | None:
    if not _INTERACTION_KEYS.isdisjoint(body) or _has_steps(body):
        return "gemini.interactions"
    if body.get("type") == "response.create" or not _RESPONSES_KEYS.isdisjoint(body):
        return "openai.responses"
    if any("name" in obj(tool) for tool in items(body.get("tools"))) or "format" in obj(body.get("text")):
        return "openai.responses"
    for item in items(body.get("input"))[:_INSPECTED]:
        if string(obj(item).get("type")) in _RESPONSES_ITEMS or "role" in obj(item):
            return "openai.responses"
    return None


def _has_steps(body: JsonObject) -> bool:
    return any(obj(item).get("type") in _STEPS for item in items(body.get("input"))[:_INSPECTED])


def response_format(value: Json) -> str | None:
    """Return the format of a response body or of a stream's event, or None."""
    body = obj(value)
    kind, name = body.get("type"), body.get("object")
    if isinstance(name, str) and name.startswith("chat.completion"):
        return "openai.chat"
    choices = body.get("choices")
    if isinstance(choices, list) and any("message" in obj(c) or "delta" in obj(c) for c in choices):
        return "openai.chat"
    if name in ("response", "response.compaction", "response.input_tokens"):
        return "openai.responses"
    if isinstance(kind, str) and kind.startswith("response."):
        return "openai.responses"
    if kind == "message_start" or (kind == "message" and "stop_reason" in body):
        return "anthropic.messages"
    body = obj(value[0]) if isinstance(value, list) and value else body  # a stream may be one list
    if _is_gemini(body) or _is_gemini(obj(body.get("response"))):
        return "gemini.generate"
    event = body.get("event_type")
    if name == "interaction" or (isinstance(event, str) and event.startswith(("interaction.", "step."))):
        return "gemini.interactions"
    is_interaction = isinstance(body.get("status"), str) and any(
        "type" in obj(step) for step in items(body.get("steps"))
    )
    return "gemini.interactions" if is_interaction else _other_response_format(body)


def _other_response_format(body: JsonObject) -> str | None:
    if body.get("object") == "text_completion":
        return "openai.completions"
    if body.get("object") == "list" and obj(next(iter(items(body.get("data"))), None)).get("object") == "embedding":
        return "embeddings"
    if isinstance(body.get("done"), bool) and "created_at" in body:
        return "ollama.chat" if "message" in body else "ollama.generate" if "response" in body else None
    if "messageStart" in body or "contentBlockDelta" in body or ("stopReason" in body and "output" in body):
        return "bedrock.converse"
    if body.get("type") == "message-start" or (body.get("finish_reason") and "role" in obj(body.get("message"))):
        return "cohere.chat"
    return None


def _is_gemini(body: JsonObject) -> bool:
    if "promptFeedback" in body or "prompt_feedback" in body:
        return True
    if "usageMetadata" in body and ("modelVersion" in body or "responseId" in body):
        return True
    candidates = items(body.get("candidates"))
    return any("content" in obj(c) or "finishReason" in obj(c) for c in candidates)
