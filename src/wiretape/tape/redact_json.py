"""Takes secrets out of a JSON value: by the names of its members, and by what its strings look like.

What did not change is the very same object afterwards, so that what requests share stays shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretape.model.jsonvalue import Json, JsonObject
from wiretape.tape.redact_names import SCHEMA_MEMBERS, Keep, Member, keep_header, member
from wiretape.tape.redact_placeholders import is_placeholder
from wiretape.tape.redact_shapes import kind_of, looks_secret

if TYPE_CHECKING:
    from wiretape.tape.redact import Redactor

_HEADER_MEMBERS = frozenset({"headers", "http_headers", "httpHeaders", "extra_headers", "custom_headers"})
_SERVER_MEMBERS = ("server_url", "url", "server_label", "authorization_token")


def redact_json(redactor: Redactor, value: Json) -> Json:
    learn(redactor, value, "")
    return rewrite(redactor, value, "")


def learn(redactor: Redactor, value: Json, name: str) -> None:
    """Remember the values of all credential-named members, so that they are found elsewhere in the same value too."""
    if isinstance(value, dict):
        for key, part in member_values(value, name):
            if isinstance(part, str):
                if is_secret(key, part) and not any(c.isspace() for c in part):
                    redactor.learn_value(part, kind_of(key))
            elif isinstance(part, dict | list):
                learn(redactor, part, key)
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict | list):
                learn(redactor, part, name)
            elif isinstance(part, str) and is_secret(name, part) and not any(c.isspace() for c in part):
                redactor.learn_value(part, kind_of(name))


def member_values(value: JsonObject, name: str) -> list[tuple[str, Json]]:
    """An object's members by the name that counts: that of the path, for the value of a JSON patch operation."""
    if "op" in value and isinstance(path := value.get("path"), str) and "value" in value:
        names = [part for part in path.split("/") if part and not part.isdigit() and part != "-"]
        return [(names[-1] if key == "value" and names else key, part) for key, part in value.items()]
    return list(value.items())


def is_secret(name: str, value: str) -> bool:
    """Whether a string is a credential because of its member's name."""
    says = member(name)
    if says is Member.PLAIN or not value or is_placeholder(value):
        return False
    return says is Member.SECRET or (says is Member.MAYBE and looks_secret(value))


def rewrite(redactor: Redactor, value: Json, name: str) -> Json:
    """The value without secrets; itself if there are none. `name`: the member that it stands in."""
    if isinstance(value, str):
        return rewrite_string(redactor, value, name)
    if isinstance(value, list):
        if name in ("dependentRequired", "required"):
            name = ""
        parts = [rewrite(redactor, part, name) for part in value]
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if isinstance(value, dict):
        return rewrite_object(redactor, value, name)
    return value


def rewrite_string(redactor: Redactor, value: str, name: str) -> str:
    if is_secret(name, value):
        return redactor.placeholder(value, kind_of(name))
    return redactor.text(value)


def rewrite_object(redactor: Redactor, value: JsonObject, name: str) -> JsonObject:
    schema = name in SCHEMA_MEMBERS
    server = name in _HEADER_MEMBERS
    made: JsonObject = {}
    changed = False
    for (key, old), counts in zip(value.items(), member_values(value, name), strict=True):
        inner = counts[0]
        if server and isinstance(old, str) and keep_header(key.lower()) is not Keep.YES and not is_placeholder(old):
            new: Json = redactor.placeholder(old, kind_of(key))
        elif schema and not isinstance(old, str):
            new = rewrite(redactor, old, "")
        else:
            new = rewrite(redactor, old, inner)
        key_now = redactor.text(key)
        changed |= new is not old or key_now is not key
        made[key_now] = new
    return made if changed else value
