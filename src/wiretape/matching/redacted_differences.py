"""Redact differences, so that they can be printed.

Requests are compared unredacted. A session redacts the live values of the differences that it returns, together with
their names: in `{"password": "hunter2"}` only the name shows that the value is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote, unquote

from wiretape.compare.difference import ABSENT, Absent, Difference
from wiretape.compare.excerpt import covered, spelled
from wiretape.compare.json_paths import steps
from wiretape.compare.multipart import FORM
from wiretape.errors import UsageError
from wiretape.matching.values import Miss, Stray
from wiretape.model.jsonvalue import Json
from wiretape.tape.output_redactor import OutputRedactor
from wiretape.tape.recording.header_cache import clean_text

T = TypeVar("T")

_NOTE = re.compile(r" \([^()]*\)$")  # after a path: "messages[3] (moved)"


def shown_differences(differing: Iterable[Difference], live: Json, output: OutputRedactor) -> tuple[Difference, ...]:
    """The differences without the secrets of the live request. `live`: its body."""
    found = tuple(differing)
    for one in found:
        output.number_after(spelled(one.recorded))
    if found:
        output.learn_body(live)
    return tuple(_shown(one, live, output) for one in found)


def without_secrets(outcome: T, output: OutputRedactor) -> T:
    """Redact the texts of an outcome. Its differences are redacted already."""
    match outcome:
        case Miss():
            what, message, mend = (output.text(text) for text in (outcome.what, outcome.message, outcome.mend))
            return replace(outcome, what=what, message=message, mend=mend, body=output.data(outcome.body))
        case Stray():
            return replace(outcome, what=output.text(outcome.what), note=output.text(outcome.note))
    return outcome


def _shown(one: Difference, live: Json, output: OutputRedactor) -> Difference:
    value = one.live if isinstance(one.live, Absent) else _redacted(one, live, output)
    if isinstance(value, str):
        value = clean_text(value)  # a body that is not text must fit into a report
    return Difference(output.text(one.where), one.recorded, _with_placeholders(one.recorded, value))


def _redacted(one: Difference, live: Json, output: OutputRedactor) -> Json:
    name, space, parameter = one.where.partition(" ")
    if name == "query":
        return _parameter(parameter, one.live, output) if space else output.url(f"?{one.live}")[1:]
    if name == "path" and isinstance(one.live, str):
        return output.url(one.live)
    try:
        parts = steps(_NOTE.sub("", one.where))
    except UsageError:
        parts = [one.where]
    found = _in_place(parts, one.live, live, output)
    if not isinstance(found, Absent):
        return found
    return output.member(next((step for step in reversed(parts) if isinstance(step, str)), ""), one.live)


def _parameter(name: str, value: Json, output: OutputRedactor) -> Json:
    if isinstance(value, list):
        return [_parameter(name, part, output) for part in value]
    before = f"?{quote(name, safe='')}="
    return unquote(output.url(f"{before}{quote(str(value), safe='')}").removeprefix(before))


def _in_place(parts: list[str | int], value: Json, live: Json, output: OutputRedactor) -> Json | Absent:
    """Redact the message or the member around a value, and return the value in it; ABSENT if it is not found there."""
    first, *rest = parts
    part = _step(live, first)
    if isinstance(part, list) and rest:
        part = [_step(part, rest[0])]
        rest[0] = 0
    made = _form(part, output) if first == FORM else output.member(str(first), part)
    for step in rest:
        part, made = _step(part, step), _step(made, step)
    return made if part is value else ABSENT


def _form(parts: Json, output: OutputRedactor) -> Json:
    """Redact the parts of a form, each content under the name of its part."""
    if not isinstance(parts, dict):
        return output.value(parts)
    return {name: _form_part(name, part, output) for name, part in parts.items()}


def _form_part(name: str, part: Json, output: OutputRedactor) -> Json:
    if isinstance(part, list):
        return [_form_part(name, one, output) for one in part]
    if isinstance(part, dict) and "content" in part:
        return {**output.value(part), "content": output.member(name, part["content"])}
    return output.value(part)


def _step(value: Json, step: str | int) -> Json:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def _with_placeholders(recorded: Json, live: Json) -> Json:
    """Replace live values with the recorded placeholders in their places."""
    if isinstance(recorded, str) and isinstance(live, str):
        return covered(recorded, live)
    if isinstance(recorded, dict) and isinstance(live, dict):
        return {name: _with_placeholders(recorded.get(name), value) for name, value in live.items()}
    if isinstance(recorded, list) and isinstance(live, list):
        pairs = zip(recorded, live, strict=False)
        return [_with_placeholders(*pair) for pair in pairs] + live[len(recorded) :]
    return live
