"""Redact a JSON value: by the names of its members, and by the shape of its strings.

Unchanged parts are the same objects afterwards, so that requests still share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import orjson

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape.redaction.arguments import holds_arguments, patches_arguments
from wiretape.tape.redaction.assignments import kind_of
from wiretape.tape.redaction.names import GRANT_MEMBERS, SCHEMA_MEMBERS, Keep, Member, keep_header, member
from wiretape.tape.redaction.placeholders import PLACEHOLDER, is_placeholder
from wiretape.tape.redaction.scanning import present
from wiretape.tape.redaction.search import Care, Search, care_for
from wiretape.tape.redaction.secret_likeness import is_credential, is_dummy

if TYPE_CHECKING:
    from wiretape.tape.redaction.redactor import Redactor

_HEADERS = frozenset({"headers", "http_headers", "httpHeaders", "extra_headers", "custom_headers"})
_SHORTEST_KEY = 8  # of members' names that are looked into
_SHORTEST_NUMBER = 8  # digits
_SHORTEST_GRANT = 8  # characters of an OAuth code or assertion
_SERVER_MEMBERS = ("server_url", "server_label", "authorization_token")  # of a hosted MCP server
_SCHEMA_MARKS = ("$ref", "anyOf", "oneOf", "allOf", "enum", "properties", "items")
_PAIR_NAMES = ("name", "key", "Name", "Key", "variable", "header")
_PAIR_VALUES = frozenset({"value", "Value", "val", "secret"})
_WALKED = ('headers":{', '"value":', '"grant_type":')  # what makes a walk worth while though no name shows it


def redact_json(redactor: Redactor, value: Json) -> Json:
    """The value without secrets; the same object if it has none."""
    if isinstance(value, str):
        return redactor.text(value)
    if not isinstance(value, dict | list):
        return value
    try:
        spelled = orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers and characters that it does not take
        return _walked(redactor, value)
    if redactor.known_clean(spelled, "json"):
        return value
    text = spelled.decode()
    search = redactor.search()
    narrowed = search.narrowed(text)
    if narrowed is None:
        if not present(text, _WALKED):
            redactor.remember_clean(spelled, "json", search)
            return value
        narrowed = Search(search.learned, (), ())
    made = JsonRedaction(redactor, narrowed).of(value)
    if redactor.search() is not search and redactor.knows(orjson.dumps(made).decode()):
        return _walked(redactor, made)  # a secret of one string is in another
    if made is value:
        redactor.remember_clean(spelled, "json", search)
    return made


def _walked(redactor: Redactor, value: Json) -> Json:
    search: Search | None = None
    while search is not redactor.search():
        search = redactor.search()
        value = JsonRedaction(redactor, search).of(value)
    return value


def is_secret(name: str, value: str) -> bool:
    """Whether a string is a credential because of its member's name."""
    says = member(name)
    if says is not Member.SECRET and says is not Member.MAYBE:
        return False
    return is_credential(value, surely=says is Member.SECRET)


class ValuePlace(NamedTuple):
    """The place of a value: the name that counts for it, and its surroundings."""

    name: str = ""
    inherits: bool = False  # it is somewhere below a credential's name
    written: bool = False  # a model wrote it as a tool's arguments
    server: bool = False  # the definition of a hosted MCP server: there the name alone decides
    path: str | None = None  # the path to report; None: report nothing

    def part(self, step: str) -> str | None:
        return None if self.path is None else self.path + step


_ROOT = ValuePlace()


class JsonRedaction:
    """One walk over a value with what may be found in it. `report` is called with each place and its kind."""

    def __init__(self, redactor: Redactor, search: Search, report: Callable[[str, str], None] | None = None) -> None:
        self._redactor = redactor
        self._search = search
        self._report = report

    def of(self, value: Json, place: ValuePlace = _ROOT) -> Json:
        """The value without secrets; the same object if it has none."""
        if isinstance(value, str):
            return self._string(value, place)
        if isinstance(value, list):
            parts = [
                self.of(part, place if place.path is None else place._replace(path=f"{place.path}[{i}]"))
                for i, part in enumerate(value)
            ]
            return value if all(map(_same, parts, value)) else parts
        if isinstance(value, dict):
            return self._object(value, place)
        return self._number(value, place)

    def _number(self, value: Json, place: ValuePlace) -> Json:
        if not isinstance(value, int) or isinstance(value, bool) or place.written:
            return value
        if len(str(abs(value))) < _SHORTEST_NUMBER or member(place.name) is not Member.SECRET:
            return value
        return self._replaced(str(value), place)

    def _string(self, value: str, place: ValuePlace) -> str:
        says = member(place.name)
        if says in (Member.SECRET, Member.MAYBE) or place.inherits:
            counts = is_credential(value, surely=says is Member.SECRET) or (
                place.server and says is Member.SECRET and bool(value) and not PLACEHOLDER.search(value)
            )
            if counts and not place.written:
                return self._replaced(value, place)
            if counts:
                self._redactor.note_written(place.name, value)
        care = care_for(says, value)
        return self._text(value, min(care, Care.WRITTEN) if place.written else care, place)

    def _text(self, text: str, care: Care, place: ValuePlace) -> str:
        if place.path is None or self._report is None:
            return self._redactor.redacted(text, self._search, care)
        before = self._redactor.counts
        made = self._redactor.redacted(text, self._search, care)
        if made is not text:
            for kind, count in self._redactor.counts.items():
                if count > before.get(kind, 0):
                    self._report(place.path, kind)
        return made

    def _replaced(self, secret: str, place: ValuePlace) -> str:
        kind = kind_of(place.name)
        self._redactor.learn_named(secret, kind)
        made = self._redactor.placeholder(secret, kind)
        if place.path is not None and self._report is not None:
            self._report(place.path, made.split(":")[1])
        return made

    def _object(self, value: JsonObject, place: ValuePlace) -> JsonObject:
        made, changed = {}, False
        for key, old, new in self._members(value, place):
            key_now = key
            if len(key) >= _SHORTEST_KEY:
                key_now = self._text(key, Care.KEYS, place)
            changed |= new is not old or key_now is not key
            made[key_now] = new
        return made if changed else value

    def _members(self, value: JsonObject, place: ValuePlace) -> Iterator[tuple[str, Json, Json]]:
        patched, server = _patched(value), _is_server(value)
        inherits = (place.inherits or _is_credential_name(place.name)) and not _is_schema(value)
        paired = _paired_name(value)
        for key, part in value.items():
            inherited = inherits and member(key) is Member.PLAIN
            inside = ValuePlace(
                paired if paired and key in _PAIR_VALUES else place.name if inherited else key,
                inherited,
                place.written or (not self._redactor.tool_arguments and holds_arguments(value, key)),
                server or place.server,
                place.part(f".{key}"),
            )
            if key in SCHEMA_MEMBERS and isinstance(part, dict):
                yield key, part, self._schema(part, inside)
            elif server and key in _HEADERS and isinstance(part, dict):
                yield key, part, self._headers(part, inside)
            elif patched:
                yield key, part, self._operation(patched, key, part, inside)
            elif key in GRANT_MEMBERS and "grant_type" in value and isinstance(part, str) and not inside.written:
                yield key, part, self._grant(part, inside)
            else:
                yield key, part, self.of(part, inside)

    def _grant(self, value: str, place: ValuePlace) -> str:
        """The code or the assertion of an OAuth token request."""
        if len(value) < _SHORTEST_GRANT or is_dummy(value) or is_placeholder(value):
            return self._string(value, place)
        return self._replaced(value, place)

    def _operation(self, names: list[str], key: str, part: Json, place: ValuePlace) -> Json:
        """A member of a JSON patch operation on the member that `names` leads to."""
        if key == "path":
            return self._text(part, Care.KEYS, place)
        if key != "value":
            return part
        written = place.written or (not self._redactor.tool_arguments and patches_arguments(names))
        place = place._replace(name=names[-1], written=written, server=names[0] in ("tools", "mcp_servers"))
        if len(names) > 1 and names[-2] in _HEADERS and isinstance(part, str):
            return self._header(part, place)
        if names[-1] in _HEADERS and isinstance(part, dict):
            return self._headers(part, place)
        if isinstance(part, dict):
            return self.of({names[-1]: part}, place._replace(name=""))[names[-1]]
        return self.of(part, place)

    def _schema(self, value: JsonObject, place: ValuePlace) -> JsonObject:
        """Properties of a JSON Schema: a name counts only if its value is a string, which is not a definition."""
        made = {
            key: self.of(
                part,
                place._replace(name=key if isinstance(part, str) else "", inherits=False, path=place.part(f".{key}")),
            )
            for key, part in value.items()
        }
        return value if all(map(_same, made.values(), value.values())) else made

    def _headers(self, value: JsonObject, place: ValuePlace) -> JsonObject:
        """The headers that a hosted tool is called with: the allow list of headers counts."""
        made = {
            key: self._header(part, place._replace(name=key, path=place.part(f".{key}"))) for key, part in value.items()
        }
        return value if all(map(_same, made.values(), value.values())) else made

    def _header(self, value: Json, place: ValuePlace) -> Json:
        keep = keep_header(place.name.lower())
        if not isinstance(value, str) or keep is Keep.YES:
            return self.of(value, place)
        return value if is_placeholder(value) or not value else self._replaced(value, place)


def _is_credential_name(name: str) -> bool:
    return bool(name) and member(name) in (Member.SECRET, Member.MAYBE)


def _is_schema(value: JsonObject) -> bool:
    return isinstance(value.get("type"), str | list) or any(mark in value for mark in _SCHEMA_MARKS)


def _paired_name(value: JsonObject) -> str:
    """The credential's name in an object such as `{"name": "API_KEY", "value": …}`; empty if it has none."""
    if _PAIR_VALUES.isdisjoint(value):
        return ""
    names = (value.get(name) for name in _PAIR_NAMES)
    return next((name for name in names if isinstance(name, str) and _is_credential_name(name)), "")


def _patched(value: JsonObject) -> list[str]:
    """The names in the path of a JSON patch operation; none if it is something else."""
    path = value.get("path")
    if "op" not in value or not isinstance(path, str):
        return []
    return [part for part in path.split("/") if part and not part.isdigit() and part != "-"]


def _is_server(value: JsonObject) -> bool:
    return any(name in value for name in _SERVER_MEMBERS)


def _same(a: object, b: object) -> bool:
    return a is b
