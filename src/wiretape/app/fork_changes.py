"""Makes the change of a fork from the options of `wiretape fork`, or of the debugger's command `fork`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from wiretape.adapters.editor import in_editor
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.model.call import ModelCall
    from wiretape.model.run import Run
    from wiretape.rerun.fork.fork import ForkChange
    from wiretape.tape.reading.reader import Tape


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """What to change: at most one of these, or an answer and the `result` of a tool call in it."""

    answer: str | None = None  # the path of a JSON file: the answer's content
    body: str | None = None  # the path of a file: the answer's body
    say: str | None = None
    result: str | None = None
    tool: str | None = None
    prompt: str | None = None
    values: tuple[str, ...] = ()
    edit: str | None = None  # "answer", "body", "request"


class ForkSource(Protocol):
    """A tape, its name as it was typed, and its run."""

    @property
    def name(self) -> str: ...
    @property
    def tape(self) -> Tape: ...
    @property
    def run(self) -> Run: ...


def change_of(source: ForkSource, call: int, options: ChangeOptions) -> tuple[ForkChange, str]:
    """Return the change, and a phrase that describes it. Raises UsageError."""
    from wiretape.rerun.fork.fork import EditedAnswer, EditedRequest, EditedResult, Unchanged, with_prompt, with_values

    given = [name for name in ("answer", "body", "say", "result", "prompt", "values", "edit") if getattr(options, name)]
    given += ["say"] if options.say == "" else []
    given += ["result"] if options.result == "" else []
    answers = options.say is not None or bool(options.answer or options.body) or options.edit in ("answer", "body")
    if len(set(given)) > (2 if answers and options.result is not None else 1):
        raise UsageError(f"only one thing can be changed: {' and '.join(f'--{_option(name)}' for name in given)}")
    if options.tool is not None and options.result is None:
        raise UsageError("--tool names the tool of --result: use them together")
    made = _call(source, call)
    if options.say is not None:
        return EditedAnswer(call, _saying(made, options.say), options.result), "another answer"
    if options.answer is not None:
        spoken = _list(Path(options.answer).read_bytes(), options.answer)
        return EditedAnswer(call, spoken, options.result), "another answer"
    if options.body is not None:
        return EditedAnswer(call, result=options.result, body=_text(options.body)), "another answer"
    if options.edit == "body":
        return EditedAnswer(call, result=options.result, body=_edited_body(source, made)), "an edited answer"
    if options.edit == "answer":
        return EditedAnswer(call, _edited_answer(made), options.result), "an edited answer"
    if options.result is not None:
        index = _tool_index(source, call, options.tool)
        return EditedResult(call, index, options.result), f"another result of {_uses(source, call)[index]}"
    if options.prompt is not None:
        return EditedRequest(call, with_prompt(made, options.prompt)), "another prompt"
    if options.values:
        values = dict(_assigned(text) for text in options.values)
        return EditedRequest(call, with_values(values)), f"another {', '.join(values)}"
    if options.edit == "request":
        return _edited_request(source, made)
    return Unchanged(call), "asked again"


def _option(name: str) -> str:
    return "set" if name == "values" else name


def _call(source: ForkSource, number: int) -> ModelCall:
    for step in source.run.steps:
        if step.call.number == number:
            return step.call
    raise UsageError(f"{source.name} has no call {number}: it has {len(source.run.steps)}")


def _saying(call: ModelCall, text: str) -> tuple[Any, ...]:
    """Return the answer's content with its last text replaced."""
    from wiretape.rerun.fork.answer_edit import answer_values

    spoken = answer_values(call.response.messages) if call.response is not None else []
    place = next((n for n in range(len(spoken) - 1, -1, -1) if "text" in spoken[n]), None)
    if place is None:
        raise UsageError(f"the answer of call {call.number} has no text: change its tool calls with --edit answer")
    spoken[place] = {"text": text}
    return tuple(spoken)


def _list(text: str | bytes, where: str) -> tuple[Any, ...]:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not JSON: {error}") from None
    if not isinstance(value, list):
        raise UsageError(f"{where} must be a list of the answer's content, as --edit answer shows it")
    return tuple(value)


def _uses(source: ForkSource, call: int) -> list[str]:
    return [u.call.name for u in source.run.tool_uses if u.call_number == call and u.call.kind != "server"]


def _tool_index(source: ForkSource, call: int, tool: str | None) -> int:
    names = _uses(source, call)
    if not names:
        raise UsageError(f"call {call} has no tool call whose result can be changed")
    if tool is None:
        if len(names) > 1:
            raise UsageError(f"call {call} has {len(names)} tool calls: choose one with --tool: {', '.join(names)}")
        return 0
    if tool.isdecimal() and 1 <= int(tool) <= len(names):
        return int(tool) - 1
    places = [place for place, name in enumerate(names) if name == tool]
    if len(places) != 1:
        problem = f"{len(places)} tool calls {tool}: give the position" if places else f"no tool call {tool}"
        listed = ", ".join(f"{place} {name}" for place, name in enumerate(names, 1))
        raise UsageError(f"call {call} has {problem}; its tool calls: {listed}")
    return places[0]


def _assigned(text: str) -> tuple[str, Any]:
    """Parse `temperature=0.2`: the value is JSON, or else text."""
    import json

    path, sign, value = text.partition("=")
    if not sign or not path:
        raise UsageError(f"--set {text}: write PATH=VALUE, as in temperature=0.2 or messages[0].content='Be brief.'")
    try:
        return path, json.loads(value)
    except (ValueError, RecursionError):
        return path, value


def _edited_answer(call: ModelCall) -> tuple[Any, ...]:
    from wiretape.rerun.fork.answer_edit import answer_values
    from wiretape.views.printable import json_text

    spoken = answer_values(call.response.messages) if call.response is not None else []
    if not spoken:
        raise UsageError(f"the answer of call {call.number} has no content to edit")
    return _list(in_editor(json_text(spoken)), "the edited text")


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error}") from None


def _edited_body(source: ForkSource, call: ModelCall) -> str:
    from wiretape.rerun.fork.answer_edit import body_text

    return in_editor(body_text(next(one for one in source.tape.exchanges if one.number == call.exchange)))


def _edited_request(source: ForkSource, call: ModelCall) -> tuple[ForkChange, str]:
    import json

    from wiretape.rerun.fork.fork import EditedRequest
    from wiretape.views.printable import json_text
    from wiretape.wire.lenient import body_json

    exchange = next(one for one in source.tape.exchanges if one.number == call.exchange)
    text = in_editor(json_text(body_json(exchange.request.body)))
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the edited text is not JSON: {error}") from None
    return EditedRequest(call.number, lambda _: body), "an edited request"
