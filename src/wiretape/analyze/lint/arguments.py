"""Rules about tool calls: arguments that are not JSON or do not fit the schema, unknown and duplicate tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from wiretape.analyze.lint.base import LintFinding, LintRule, Subject, tool_call_path
from wiretape.analyze.lint.schemas import Misfit, Schemas
from wiretape.analyze.prefix_breaks import provider_holds_history, value_break
from wiretape.model.call import Control, ModelCall, ToolCall, ToolSpec
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.runs.threads import failed

_EXPANDERS = frozenset({"multi_tool_use.parallel", "parallel"})  # a wrapper for several calls that models invent


def function_calls(subject: Subject) -> Iterator[tuple[ModelCall, int, ToolCall]]:
    """Yield every function call of a complete answer, with its index among the answer's tool calls."""
    for call in subject.calls:
        if not failed(call):
            for index, tool in enumerate(call.tool_calls):
                if tool.kind == "function":
                    yield call, index, tool


class ArgumentsNotJson(LintRule):
    id = "WT003"
    name = "arguments-not-json"
    severity = "error"
    summary = "A tool call's arguments are not a JSON object."
    explains = (
        "The arguments of a function are the text of a JSON object. Models sometimes write other text, and an answer "
        "that was cut at its length limit ends inside the object. Empty arguments are an empty object. The rule "
        "ignores custom tools, which take free text, and answers that failed or were cut off."
    )
    mend = "return the parse error as the tool's result; if the answer was cut, raise its output limit"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for call, index, tool in function_calls(subject):
            wrong = _no_object(tool.arguments)
            if wrong is not None:
                cut = call.response is not None and call.response.finish == "length"
                why = "; the answer was cut at its length limit" if cut else ""
                text = f"the arguments of {tool.name} are {wrong}{why}"
                path = f"{tool_call_path(call, index)}.arguments"
                yield self.finding(text, call, path, values={"arguments": tool.arguments})


def parsed(arguments: str) -> Json:
    """Parse arguments; None if they are not a JSON object."""
    try:
        value = orjson.loads(arguments) if arguments.strip() else {}
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _no_object(arguments: str) -> str | None:
    if not arguments.strip():
        return None
    try:
        value = orjson.loads(arguments)
    except orjson.JSONDecodeError as error:
        return f"not JSON ({error})"
    kinds: dict[type, str] = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return None if isinstance(value, dict) else f"{kinds.get(type(value), 'a number')}, not a JSON object"


class ArgumentsDoNotFit(LintRule):
    id = "WT004"
    name = "arguments-do-not-fit"
    severity = "error"
    summary = "A tool call's arguments do not fit the schema of its tool."
    explains = (
        "The arguments are validated with the JSON Schema of the tool in the same request. Every finding has the path "
        "in the arguments, the value there, and the schema's requirement. Gemini's upper-case types and `nullable` "
        "are supported. A schema that is invalid, or that refers to another document, is ignored."
    )
    mend = "return the mismatch as the tool's result, and explain the argument in the schema's description"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        schemas = Schemas()
        for call, index, tool in function_calls(subject):
            spec = _offered(tool.name, call.request.tools)
            arguments = parsed(tool.arguments)
            if spec is None or arguments is None:
                continue
            for misfit in schemas.misfits(spec, arguments):
                yield self._finding(call, index, tool, misfit)

    def _finding(self, call: ModelCall, index: int, tool: ToolCall, misfit: Misfit) -> LintFinding:
        text = f"the arguments of {tool.name} do not fit its schema: {misfit.problem}"
        values = {"argument": misfit.value, "schema": misfit.wanted}
        return self.finding(text, call, f"{tool_call_path(call, index)}.arguments{misfit.path}", values=values)


def _offered(name: str, tools: Iterable[ToolSpec]) -> ToolSpec | None:
    return next((tool for tool in tools if tool.name == name and tool.kind == "function"), None)


class UnknownTool(LintRule):
    id = "WT005"
    name = "unknown-tool"
    severity = "error"
    summary = "The model called a tool that its request does not offer."
    explains = (
        "The called name is not among the request's tools: the model invented it, knows it from the history, or the "
        "client stopped offering it. The rule ignores tools that the provider runs, histories that the provider has, "
        "and tools that were added during the conversation (a tool search, a tool list in a message)."
    )
    mend = "return an error that lists the offered tools, and offer the same tools in the whole thread"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for call, index, tool in function_calls(subject):
            names = [spec.name for spec in call.request.tools]
            if tool.name in names or tool.name in _EXPANDERS or _more_tools(call):
                continue
            text = f"{tool.name or 'a tool without a name'} is not among the tools that the request offers"
            offers = ", ".join(names) or "(no tools)"
            yield self.finding(text, call, tool_call_path(call, index), values={"asked": tool.name, "offered": offers})


def _more_tools(call: ModelCall) -> bool:
    """True if the model may know tools that the request does not list."""
    if provider_holds_history(call.request) or not call.request.messages:
        return True
    if any(spec.kind == "server" for spec in call.request.tools):
        return True  # such as a tool search, or an MCP server that the provider calls
    return any(isinstance(block, Control) for message in call.request.messages for block in message.blocks)


class DuplicateTool(LintRule):
    id = "WT006"
    name = "duplicate-tool-definition"
    severity = "warning"
    summary = "A request defines the same tool twice."
    explains = (
        "Two tools of a request have the same name. Some providers reject such a request; others use one of the two "
        "without saying which. Both cost input tokens in every request. It is reported once for each thread and name."
    )
    mend = "register each tool once, or rename the second one"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        reported: set[tuple[int, str]] = set()
        seen: set[int] = set()
        for call in subject.calls:
            thread = subject.steps[call.number].thread
            if id(call.request.tools) in seen:
                continue
            seen.add(id(call.request.tools))
            for first, second in _twice(call.request.tools):
                spec = call.request.tools[second]
                if (thread, spec.name) in reported:
                    continue
                reported.add((thread, spec.name))
                same = call.request.tools[first].raw == spec.raw
                text = f"{spec.name} is defined at tools[{first}], and again{'' if same else ', differently,'}"
                values = {} if same else _differ(call.request.tools[first].raw, spec.raw)
                yield self.finding(f"{text} at tools[{second}]", call, f"tools[{second}]", values=values)


def _twice(tools: Iterable[ToolSpec]) -> Iterator[tuple[int, int]]:
    places: dict[str, int] = {}
    for index, tool in enumerate(tools):
        if tool.name and tool.name in places and tool.kind != "server":
            yield places[tool.name], index
        places.setdefault(tool.name, index)


def _differ(one: JsonObject, other: JsonObject) -> dict[str, str]:
    found = value_break("", one, other)
    return {f"first{found.path}": found.before or "(absent)", f"second{found.path}": found.after or "(absent)"}
