"""What a replay tells its child, so that SDKs find it and start."""

from __future__ import annotations

from tests.support.replaying import exchange, session

from wiretape.adapters.routing.dummy_keys import DUMMY_KEY, bedrock_variables

ASKED = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
BEDROCK = session(exchange(1, ASKED, {}, url="https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse"))


def test_bedrocks_sdks_are_led_here_and_start() -> None:
    here = "http://127.0.0.1:9"
    assert bedrock_variables({}, BEDROCK, 9) == {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": here,
        "ANTHROPIC_BEDROCK_BASE_URL": here,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": DUMMY_KEY,
        "AWS_SECRET_ACCESS_KEY": DUMMY_KEY,
    }


def test_what_the_user_set_for_bedrock_stays() -> None:
    own = {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "https://own.example.com",
        "AWS_REGION": "eu-west-1",
        "AWS_PROFILE": "me",
    }
    assert bedrock_variables(own, BEDROCK, 9) == {"ANTHROPIC_BEDROCK_BASE_URL": "http://127.0.0.1:9"}


def test_without_bedrock_on_the_tape_nothing_is_set() -> None:
    assert bedrock_variables({}, session(exchange(1, {"model": "m", "messages": []})), 9) == {}
