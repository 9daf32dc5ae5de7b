"""Everything that the author of a plug-in imports. docs/plugins.md has an example of each kind.

A package registers its plug-ins in the entry-point groups `wiretape.formats`, `wiretape.importers`,
`wiretape.exporters`, `wiretape.lint_rules` and `wiretape.presets`.
"""

from __future__ import annotations

from wiretape.adapters.exporters.exporting import Exporter
from wiretape.adapters.importers.documents import ImportRefused
from wiretape.adapters.importers.importing import ImporterPlugin as Importer
from wiretape.adapters.importers.source import ImportedExchange, ParsedEntry, RefusedEntry, Source, each
from wiretape.adapters.launch.presets import ConfigFile, Preset, Variable
from wiretape.analyze.lint.base import LintFinding, LintRule, Severity, Subject
from wiretape.errors import WireError, WiretapeError
from wiretape.model.call import (
    Block,
    CallError,
    CallRequest,
    CallResponse,
    Control,
    Media,
    Message,
    ModelCall,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Unknown,
    Usage,
)
from wiretape.model.http import (
    Body,
    BytesBody,
    Close,
    Ended,
    Exchange,
    Headers,
    JsonBody,
    Request,
    Response,
    StreamBody,
    TextBody,
    WsMessage,
    body_bytes,
)
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.model.run import Agent, Run, Step, Thread, ToolUse, Turn
from wiretape.tape.reading.reader import Tape
from wiretape.wire.base import Claim, Memo, SocketFollower, SocketFormat, Volatile, WireFormat
from wiretape.wire.decoding import build_call, json_error, unreadable_request
from wiretape.wire.lenient import body_json
from wiretape.wire.payload import EventPayload, JsonPayload, TextPayload, read_payload
from wiretape.wire.sse import NdjsonDecoder, SseDecoder

__all__ = [
    "Agent",
    "Block",
    "Body",
    "BytesBody",
    "CallError",
    "CallRequest",
    "CallResponse",
    "Claim",
    "Close",
    "ConfigFile",
    "Control",
    "Ended",
    "EventPayload",
    "Exchange",
    "Exporter",
    "Headers",
    "ImportRefused",
    "ImportedExchange",
    "Importer",
    "Json",
    "JsonBody",
    "JsonObject",
    "JsonPayload",
    "LintFinding",
    "LintRule",
    "Media",
    "Memo",
    "Message",
    "ModelCall",
    "NdjsonDecoder",
    "ParsedEntry",
    "Preset",
    "Reasoning",
    "RefusedEntry",
    "Request",
    "Response",
    "Run",
    "Severity",
    "SocketFollower",
    "SocketFormat",
    "Source",
    "SseDecoder",
    "Step",
    "StreamBody",
    "Subject",
    "Tape",
    "Text",
    "TextBody",
    "TextPayload",
    "Thread",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "ToolUse",
    "Turn",
    "Unknown",
    "Usage",
    "Variable",
    "Volatile",
    "WireError",
    "WireFormat",
    "WiretapeError",
    "WsMessage",
    "body_bytes",
    "body_json",
    "build_call",
    "each",
    "json_error",
    "read_payload",
    "unreadable_request",
]
