"""What a fork changes, as it was asked for on the command line or at the debugger's prompt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretape.adapters.editor import in_editor
from wiretape.errors import UsageError

if TYPE_CHECKING:
    from wiretape.cli.tapes import Opened
    from wiretape.model.call import ModelCall
    from wiretape.rerun.fork.fork import ForkChange


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be changed, as it was asked for: one of these at most."""

    answer: str | None = None  # a file: the JSON of what the answer says
    body: str | None = None  # a file: the answer's body
    say: str | None = None
    result: str | None = None
    tool: str | None = None
    prompt: str | None = None
    values: tuple[str, ...] = ()
    edit: str | None = None  # "answer", "body", "request"


def change_of(opened: Opened, call: int, wish: Wish) -> tuple[ForkChange, str]:
    """The change that was asked for, and how it is told of."""
    from wiretape.rerun.fork.fork import EditedAnswer, EditedRequest, EditedResult, Unchanged, with_prompt, with_values

    given = [name for name in ("answer", "body", "say", "result", "prompt", "values", "edit") if getattr(wish, name)]
    given += ["say"] if wish.say == "" else []
    given += ["result"] if wish.result == "" else []
    answers = wish.say is not None or bool(wish.answer or wish.body) or wish.edit in ("answer", "body")
    if len(set(given)) > (2 if answers and wish.result is not None else 1):
        raise UsageError(f"one thing is changed at a time: {' and '.join(f'--{_option(name)}' for name in given)}")
    if wish.tool is not None and wish.result is None:
        raise UsageError("--tool says which tool --result is of: give that, too")
    made = _call(opened, call)
    if wish.say is not None:
        return EditedAnswer(call, _saying(made, wish.say), wish.result), "another answer"
    if wish.answer is not None:
        spoken = _list(Path(wish.answer).read_bytes(), wish.answer)
        return EditedAnswer(call, spoken, wish.result), "another answer"
    if wish.body is not None:
        return EditedAnswer(call, result=wish.result, body=_text(wish.body)), "another answer"
    if wish.edit == "body":
        return EditedAnswer(call, result=wish.result, body=_edited_body(opened, made)), "an edited answer"
    if wish.edit == "answer":
        return EditedAnswer(call, _edited_answer(made), wish.result), "an edited answer"
    if wish.result is not None:
        index = _tool_index(opened, call, wish.tool)
        return EditedResult(call, index, wish.result), f"another result of {_uses(opened, call)[index]}"
    if wish.prompt is not None:
        return EditedRequest(call, with_prompt(made, wish.prompt)), "another prompt"
    if wish.values:
        values = dict(_assigned(text) for text in wish.values)
        return EditedRequest(call, with_values(values)), f"another {', '.join(values)}"
    if wish.edit == "request":
        return _edited_request(opened, made)
    return Unchanged(call), "asked again"


def _option(name: str) -> str:
    return "set" if name == "values" else name


def _call(opened: Opened, number: int) -> ModelCall:
    for step in opened.run.steps:
        if step.call.number == number:
            return step.call
    raise UsageError(f"{opened.name} has no call {number}: it has {len(opened.run.steps)}")


def _saying(call: ModelCall, text: str) -> tuple[Any, ...]:
    """What the answer says, with its last text changed."""
    from wiretape.rerun.fork.answer_edit import answer_values

    spoken = answer_values(call.response.messages) if call.response is not None else []
    place = next((n for n in range(len(spoken) - 1, -1, -1) if "text" in spoken[n]), None)
    if place is None:
        raise UsageError(f"the answer of call {call.number} says no text: change what it asks for with --edit answer")
    spoken[place] = {"text": text}
    return tuple(spoken)


def _list(text: str | bytes, where: str) -> tuple[Any, ...]:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: {error}") from None
    if not isinstance(value, list):
        raise UsageError(f"{where} must be a list of what the answer says, as --edit answer shows it")
    return tuple(value)


def _uses(opened: Opened, call: int) -> list[str]:
    return [u.call.name for u in opened.run.tool_uses if u.call_number == call and u.call.kind != "server"]


def _tool_index(opened: Opened, call: int, tool: str | None) -> int:
    names = _uses(opened, call)
    if not names:
        raise UsageError(f"call {call} asks for no tool whose result could be another")
    if tool is None:
        if len(names) > 1:
            raise UsageError(f"call {call} asks for {len(names)} tools: say which with --tool: {', '.join(names)}")
        return 0
    if tool.isdecimal() and 1 <= int(tool) <= len(names):
        return int(tool) - 1
    places = [place for place, name in enumerate(names) if name == tool]
    if len(places) != 1:
        many = f"{len(places)} times {tool}: give its place" if places else f"no {tool}"
        listed = ", ".join(f"{place} {name}" for place, name in enumerate(names, 1))
        raise UsageError(f"call {call} asks for {many}; it asks for {listed}")
    return places[0]


def _assigned(text: str) -> tuple[str, Any]:
    """`temperature=0.2`: JSON, or a text where it is none."""
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
        raise UsageError(f"the answer of call {call.number} says nothing that could be edited")
    return _list(in_editor(json_text(spoken)), "what was written")


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8 text: {error}") from None


def _edited_body(opened: Opened, call: ModelCall) -> str:
    from wiretape.rerun.fork.answer_edit import body_text

    return in_editor(body_text(next(one for one in opened.tape.exchanges if one.number == call.exchange)))


def _edited_request(opened: Opened, call: ModelCall) -> tuple[ForkChange, str]:
    import json

    from wiretape.rerun.fork.fork import EditedRequest
    from wiretape.views.printable import json_text
    from wiretape.wire.lenient import body_json

    exchange = next(one for one in opened.tape.exchanges if one.number == call.exchange)
    text = in_editor(json_text(body_json(exchange.request.body)))
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"what was written is no JSON: {error}") from None
    return EditedRequest(call.number, lambda _: body), "an edited request"
