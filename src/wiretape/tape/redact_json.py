"""Takes secrets out of a JSON value: by the names of its members, and by what its strings look like.

What did not change is the very same object afterwards, so that what requests share stays shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import orjson

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape.redact_members import kind_of, looks_secret
from wiretape.tape.redact_names import SCHEMA_MEMBERS, Keep, Member, keep_header, member
from wiretape.tape.redact_placeholders import PLACEHOLDER, is_placeholder
from wiretape.tape.redact_search import Care, Search, care_for

if TYPE_CHECKING:
    from wiretape.tape.redact import Redactor

_HEADERS = frozenset({"headers", "http_headers", "httpHeaders", "extra_headers", "custom_headers"})
_SHORTEST_KEY = 8  # of members' names that are looked into
_SERVER_MEMBERS = ("server_url", "server_label", "url", "authorization_token")  # beside `headers`: a hosted MCP server


def redact_json(redactor: Redactor, value: Json) -> Json:
    """The value without secrets; the very same object if there are none."""
    if isinstance(value, str):
        return redactor.text(value)
    if not isinstance(value, dict | list):
        return value
    try:
        spelled = orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers and characters that it does not take
        learn(redactor, value)
        return _Rewriting(redactor, redactor.search()).of(value)
    if redactor.known_clean(spelled, "json"):
        return value
    named = learn(redactor, value)
    known = redactor.search()
    search = known.narrowed(spelled)
    redacted = value
    if named or search is not None:
        redacted = _Rewriting(redactor, search or Search((), (), ())).of(value)
    if redactor.search() is not known:  # what was found in one string may stand in another
        return redact_json(redactor, redacted)
    if redacted is value:
        redactor.remember_clean(spelled, "json")
    return redacted


def is_secret(name: str, value: str) -> bool:
    """Whether a string is a credential because of its member's name."""
    says = member(name)
    if says is not Member.SECRET and says is not Member.MAYBE:
        return False
    if not value or PLACEHOLDER.search(value):
        return False
    return says is Member.SECRET or looks_secret(value)


def learn(redactor: Redactor, value: Json, name: str = "") -> bool:
    """Remember the values of credential-named members, so as to find them elsewhere too; whether there are any."""
    found = False
    if isinstance(value, str):
        if is_secret(name, value):
            found = True
            if not any(c.isspace() for c in value):
                redactor.learn_value(value, kind_of(name))
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, str | dict | list):
                found |= learn(redactor, part, name)
    elif isinstance(value, dict):
        server = _is_server(value)
        found = not _HEADERS.isdisjoint(_patched(value))
        for key, part in value.items():
            if isinstance(part, str):
                counts = _patched_name(value) if key == "value" else key
                found |= member(counts) is not Member.PLAIN and learn(redactor, part, counts)
            elif isinstance(part, dict | list):
                found |= _learn_part(redactor, value, key, part)
                found |= server and key in _HEADERS
    return found


def _learn_part(redactor: Redactor, whole: JsonObject, key: str, part: Json) -> bool:
    if key in SCHEMA_MEMBERS and isinstance(part, dict):
        found = [learn(redactor, inner, k if isinstance(inner, str) else "") for k, inner in part.items()]
        return any(found)  # all of them are learnt from
    return learn(redactor, part, _patched_name(whole) if key == "value" else key)


def _patched(value: JsonObject) -> list[str]:
    """The names in the path of a JSON patch operation; none if it is something else."""
    path = value.get("path")
    if "op" not in value or not isinstance(path, str):
        return []
    return [part for part in path.split("/") if part and not part.isdigit() and part != "-"]


def _patched_name(value: JsonObject) -> str:
    """The name that counts for the member `value`: in a JSON patch operation, the one that its path ends with."""
    return (_patched(value) or ["value"])[-1]


def _is_server(value: JsonObject) -> bool:
    return any(name in value for name in _SERVER_MEMBERS)


class _Rewriting:
    """One walk over a value with what may be found in it."""

    def __init__(self, redactor: Redactor, search: Search) -> None:
        self._redactor = redactor
        self._search = search

    def of(self, value: Json, name: str = "") -> Json:
        """The value without secrets; itself if there are none. `name`: of the member that it stands in."""
        if isinstance(value, str):
            return self._string(value, name)
        if isinstance(value, list):
            parts = [self.of(part, name) for part in value]
            return value if all(map(_same, parts, value)) else parts
        if isinstance(value, dict):
            return self._object(value)
        return value

    def _string(self, value: str, name: str) -> str:
        if is_secret(name, value):
            return self._redactor.placeholder(value, kind_of(name))
        return self._redactor.redacted(value, self._search, care_for(member(name), value))

    def _object(self, value: JsonObject) -> JsonObject:
        made, changed = {}, False
        for key, old, new in self._members(value):
            key_now = self._redactor.redacted(key, self._search, Care.KEYS) if len(key) >= _SHORTEST_KEY else key
            changed |= new is not old or key_now is not key
            made[key_now] = new
        return made if changed else value

    def _members(self, value: JsonObject) -> Iterator[tuple[str, Json, Json]]:
        server, patched = _is_server(value), _patched(value)
        for key, part in value.items():
            if key in SCHEMA_MEMBERS and isinstance(part, dict):
                yield key, part, self._schema(part)
            elif server and key in _HEADERS and isinstance(part, dict):
                yield key, part, self._headers(part)
            elif patched:
                yield key, part, self._operation(patched, key, part)
            else:
                yield key, part, self.of(part, key)

    def _operation(self, names: list[str], key: str, part: Json) -> Json:
        """A member of a JSON patch operation on the member that `names` leads to."""
        if key == "path":
            return self._redactor.redacted(part, self._search, Care.KEYS)
        if key != "value":
            return part
        if len(names) > 1 and names[-2] in _HEADERS and isinstance(part, str):
            return self._header(names[-1], part)
        if names[-1] in _HEADERS and isinstance(part, dict):
            return self._headers(part)
        return self.of({names[-1]: part}, "")[names[-1]] if isinstance(part, dict) else self.of(part, names[-1])

    def _schema(self, value: JsonObject) -> JsonObject:
        """Properties of a JSON Schema: their names say nothing about secrets, unless the value is no definition."""
        made = {key: self.of(part, key if isinstance(part, str) else "") for key, part in value.items()}
        return value if all(map(_same, made.values(), value.values())) else made

    def _headers(self, value: JsonObject) -> JsonObject:
        """The headers that a hosted tool is called with: the allow list of headers counts."""
        made = {key: self._header(key, part) for key, part in value.items()}
        return value if all(map(_same, made.values(), value.values())) else made

    def _header(self, name: str, value: Json) -> Json:
        keep = keep_header(name.lower())
        if not isinstance(value, str) or keep is Keep.YES:
            return self.of(value, name)
        return value if is_placeholder(value) or not value else self._redactor.placeholder(value, kind_of(name))


def _same(a: object, b: object) -> bool:
    return a is b
