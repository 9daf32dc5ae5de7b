"""Dummy API keys, set while replays need them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.replaying import chat, exchange, user

from wiretape.adapters.inprocess.dummy_api_keys import DummyKeys
from wiretape.adapters.routing.dummy_keys import DUMMY_KEY
from wiretape.matching.session import ReplaySession
from wiretape.tape.reading.reader import Tape

BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse"
SAID = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}


def session(url: str, body: Any = None) -> ReplaySession:
    made: Any = exchange(1, body or chat(user("hi")), url=url)
    tape: Any = Tape(Path("x.tape"), None, (made,))  # type: ignore[arg-type]
    return ReplaySession([tape])


def test_two_replays_at_once_need_a_key_until_the_last_is_over() -> None:
    environ: dict[str, str] = {}
    keys = DummyKeys(environ)
    one = keys.add(session("https://api.openai.com/v1/chat/completions"))
    other = keys.add(session("https://api.openai.com/v1/chat/completions"))
    assert environ == {"OPENAI_API_KEY": DUMMY_KEY}
    keys.remove(one)
    assert environ == {"OPENAI_API_KEY": DUMMY_KEY}
    keys.remove(other)
    assert environ == {}


def test_what_the_person_set_stays_before_and_meanwhile() -> None:
    environ = {"OPENAI_API_KEY": "mine"}
    keys = DummyKeys(environ)
    assert keys.add(session("https://api.openai.com/v1/chat/completions")) == []
    lent = keys.add(session("https://api.anthropic.com/v1/messages"))
    environ["ANTHROPIC_API_KEY"] = "mine, too"
    keys.remove(lent)
    assert environ == {"OPENAI_API_KEY": "mine", "ANTHROPIC_API_KEY": "mine, too"}


def test_bedrock_s_sdks_get_a_region_and_an_identity_where_aws_has_none(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")}
    environ = dict(files)
    keys = DummyKeys(environ)
    lent = keys.add(session(BEDROCK, SAID))
    assert {name: value for name, value in environ.items() if name not in files} == {
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": DUMMY_KEY,
        "AWS_SECRET_ACCESS_KEY": DUMMY_KEY,
    }
    keys.remove(lent)
    assert environ == files
    Path(files["AWS_CONFIG_FILE"]).write_text("[default]\nregion = eu-west-1\n")
    assert keys.add(session(BEDROCK, SAID)) == []
