"""Rules about what a model asked a tool for: arguments that cannot be read, that do not fit, of a tool not offered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from wiretape.analyze.lint.base import LintFinding, LintRule, Subject, asked_path
from wiretape.analyze.lint.schemas import Misfit, Schemas
from wiretape.analyze.prefix_breaks import provider_holds_history
from wiretape.model.call import Control, ModelCall, ToolCall, ToolSpec
from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.runs.threads import failed

_EXPANDERS = frozenset({"multi_tool_use.parallel", "parallel"})  # a wrapper that models make up for several calls


def asked_functions(subject: Subject) -> Iterator[tuple[ModelCall, int, ToolCall]]:
    """Every call of a function in a whole answer, with its place among the answer's tool calls."""
    for call in subject.calls:
        if not failed(call):
            for index, tool in enumerate(call.tool_calls):
                if tool.kind == "function":
                    yield call, index, tool


class ArgumentsNotJson(LintRule):
    id = "WT003"
    name = "arguments-not-json"
    severity = "error"
    summary = "A tool call's arguments are no JSON object."
    explains = (
        "A function's arguments are the text of a JSON object. Models sometimes write something else, and an answer "
        "that was cut at its length limit ends in the middle of it. Empty arguments are an empty object. Custom tools "
        "take free text and are not looked at; nor are answers that failed or were cut off."
    )
    mend = "give the model the parse error as the tool's result; if the answer was cut, raise its output limit"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for call, index, tool in asked_functions(subject):
            wrong = _no_object(tool.arguments)
            if wrong is not None:
                cut = call.response is not None and call.response.finish == "length"
                why = "; the answer was cut at its length limit" if cut else ""
                text = f"the arguments of {tool.name} are {wrong}{why}"
                path = f"{asked_path(call, index)}.arguments"
                yield self.finding(text, call, path, values={"arguments": tool.arguments})


def parsed(arguments: str) -> Json:
    """Arguments as a value; None where they are no JSON object."""
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
        return f"no JSON ({error})"
    kinds: dict[type, str] = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return None if isinstance(value, dict) else f"{kinds.get(type(value), 'a number')}, not a JSON object"


class ArgumentsDoNotFit(LintRule):
    id = "WT004"
    name = "arguments-do-not-fit"
    severity = "error"
    summary = "A tool call's arguments do not fit the schema of its tool."
    explains = (
        "The arguments are checked against the JSON Schema that the same request offered the tool with. Every misfit "
        "names its place in the arguments, what stands there and what the schema wants. Gemini's upper-case types and "
        "`nullable` are understood; a schema that is not valid itself, or that refers to something elsewhere, is not "
        "judged."
    )
    mend = "give the model the mismatch as the tool's result, and say in the schema's descriptions what is meant"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        schemas = Schemas()
        for call, index, tool in asked_functions(subject):
            spec = _offered(tool.name, call.request.tools)
            arguments = parsed(tool.arguments)
            if spec is None or arguments is None:
                continue
            for misfit in schemas.misfits(spec, arguments):
                yield self._finding(call, index, tool, misfit)

    def _finding(self, call: ModelCall, index: int, tool: ToolCall, misfit: Misfit) -> LintFinding:
        text = f"the arguments of {tool.name} do not fit its schema: {misfit.said}"
        values = {"argument": misfit.value, "schema": misfit.wanted}
        return self.finding(text, call, f"{asked_path(call, index)}.arguments{misfit.path}", values=values)


def _offered(name: str, tools: Iterable[ToolSpec]) -> ToolSpec | None:
    return next((tool for tool in tools if tool.name == name and tool.kind == "function"), None)


class UnknownTool(LintRule):
    id = "WT005"
    name = "unknown-tool"
    severity = "error"
    summary = "The model called a tool that its request does not offer."
    explains = (
        "The name that the model called is not among the request's tools: the model made it up, remembers it from its "
        "history, or the client stopped offering it. Not judged: tools that the provider runs, requests of which the "
        "provider has a part, and tools that came into the conversation later on (a tool search, a tool list that a "
        "message carries)."
    )
    mend = "answer it with an error that names the tools on offer, and keep the tools the same in the whole thread"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        for call, index, tool in asked_functions(subject):
            names = [spec.name for spec in call.request.tools]
            if tool.name in names or tool.name in _EXPANDERS or _more_tools(call):
                continue
            text = f"{tool.name or 'a tool without a name'} is not among the tools that the request offers"
            offers = ", ".join(names) or "(no tools)"
            yield self.finding(text, call, asked_path(call, index), values={"asked": tool.name, "offered": offers})


def _more_tools(call: ModelCall) -> bool:
    """Whether tools may be on offer that the request's list does not name."""
    if provider_holds_history(call.request) or not call.request.messages:
        return True
    if any(spec.kind == "server" for spec in call.request.tools):
        return True  # such as a tool search, or an MCP server that the provider asks
    return any(isinstance(block, Control) for message in call.request.messages for block in message.blocks)


class DuplicateTool(LintRule):
    id = "WT006"
    name = "duplicate-tool-definition"
    severity = "warning"
    summary = "A request defines the same tool twice."
    explains = (
        "Two tools of a request have the same name. Some providers refuse that; others take one of them without "
        "saying which, and both are paid for in every request. It is told once for each thread and name."
    )
    mend = "register each tool once, or give the second one a name of its own"

    def check(self, subject: Subject) -> Iterable[LintFinding]:
        told: set[tuple[int, str]] = set()
        seen: set[int] = set()
        for call in subject.calls:
            thread = subject.steps[call.number].thread
            if id(call.request.tools) in seen:
                continue
            seen.add(id(call.request.tools))
            for first, second in _twice(call.request.tools):
                spec = call.request.tools[second]
                if (thread, spec.name) in told:
                    continue
                told.add((thread, spec.name))
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
    from wiretape.analyze.prefix_breaks import value_break

    found = value_break("", one, other)
    return {f"first{found.path}": found.before or "(absent)", f"second{found.path}": found.after or "(absent)"}
