"""Signatures of requests to Bedrock, and errors without credentials or botocore."""

from __future__ import annotations

import hashlib
import hmac
import sys
from pathlib import Path

import pytest
from tests.support.growing import FORMATS

from wiretape.adapters.rerun.endpoints import region_of, signature
from wiretape.adapters.rerun.live_model import LiveModel, Target
from wiretape.errors import UsageError
from wiretape.model.http import Ended, Exchange, body_bytes
from wiretape.rerun.scheduler import Rerun

URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3%3A0/invoke"
KEY = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY[1])
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "region"),
    [
        (URL, "us-east-1"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/model/m/converse", "us-gov-west-1"),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/m/converse", "cn-north-1"),
        ("https://vpce-1a.bedrock-runtime.eu-west-1.vpce.amazonaws.com/model/m/converse", "eu-west-1"),
        ("http://127.0.0.1:4000/model/m/converse", None),
        ("https://bedrock-runtime.us-east-1.amazonaws.com.evil.example/model/m/converse", None),
    ],
)
def test_only_bedrock_endpoints_are_signed(url: str, region: str | None) -> None:
    assert region_of(url) == region


def expected(date: str, data: bytes, key: str) -> str:
    """Return a Signature Version 4 as documented; the path is encoded twice, as for every service except S3."""

    def mac(secret: bytes, text: str) -> bytes:
        return hmac.new(secret, text.encode(), hashlib.sha256).digest()

    scope = f"{date[:8]}/us-east-1/bedrock/aws4_request"
    canonical = "\n".join(
        [
            "POST",
            "/model/anthropic.claude-3%253A0/invoke",
            "",
            "content-type:application/json",
            "host:bedrock-runtime.us-east-1.amazonaws.com",
            f"x-amz-date:{date}",
            "",
            "content-type;host;x-amz-date",
            hashlib.sha256(data).hexdigest(),
        ]
    )
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    derived = f"AWS4{key}".encode()
    for part in scope.split("/"):
        derived = mac(derived, part)
    signed = mac(derived, text).hex()
    return (
        f"AWS4-HMAC-SHA256 Credential={KEY[0]}/{scope}, SignedHeaders=content-type;host;x-amz-date, Signature={signed}"
    )


@pytest.mark.usefixtures("credentials")
def test_the_signature_follows_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    data = b'{"messages":[]}'
    made = dict(signature(URL, [("content-type", "application/json")], data, "us-east-1"))
    assert made["authorization"] == expected(made["x-amz-date"], data, KEY[1])
    assert made.keys() == {"authorization", "x-amz-date"}
    monkeypatch.setenv("AWS_SESSION_TOKEN", "IQoJ")
    with_token = dict(signature(URL, [("content-type", "application/json")], data, "us-east-1"))
    assert with_token["x-amz-security-token"] == "IQoJ"


def test_missing_credentials_are_reported(monkeypatch: pytest.MonkeyPatch, credentials: None) -> None:
    pytest.importorskip("botocore")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(UsageError, match="found no AWS credentials to sign requests to Bedrock"):
        signature(URL, [], b"", "us-east-1")


@pytest.mark.usefixtures("credentials")
def test_refused_credentials_are_reported_and_requested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    from botocore.exceptions import ClientError
    from botocore.session import Session

    looked: list[Session] = []

    class Refused:
        def get_frozen_credentials(self) -> None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no such role for you"}}, "AssumeRole")

    monkeypatch.setenv("AWS_PROFILE", "of this test")
    monkeypatch.setattr(Session, "get_credentials", lambda self: looked.append(self) or Refused())
    for _ in range(2):
        with pytest.raises(UsageError, match=r"cannot get AWS credentials: .*no such role for you"):
            signature(URL, [], b"", "us-east-1")
    assert len(looked) == 1


def test_a_missing_botocore_is_reported_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.setitem(sys.modules, "botocore.awsrequest", None)
    with pytest.raises(UsageError, match="pip install botocore\n  or set AWS_BEARER_TOKEN_BEDROCK"):
        signature(URL, [], b"", "us-east-1")


def rerun() -> Rerun:
    one = next(one for one in FORMATS if one.label == "bedrock.invoke anthropic")
    return Rerun([Exchange(1, 0, one.request(one.body), one.response("Seven.", []), Ended.COMPLETE, 1)], live=True)


@pytest.mark.usefixtures("credentials")
def test_a_live_rerun_signs_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    played = rerun()
    send = played.next()
    assert send is not None
    request = LiveModel(Target("anthropic.claude-3:0")).request(send, played.recorded_call(send))
    assert request.url == URL
    signed = request.headers.get("authorization")
    assert signed == expected(request.headers.get("x-amz-date", ""), body_bytes(request.body), KEY[1])


def test_a_bedrock_api_key_needs_no_signature() -> None:
    played = rerun()
    send = played.next()
    assert send is not None
    model = LiveModel(Target("anthropic.claude-3:0"), environ={"AWS_BEARER_TOKEN_BEDROCK": "bedrock-key"})
    request = model.request(send, played.recorded_call(send))
    assert request.headers.get("authorization") == "Bearer bedrock-key"
    assert "x-amz-date" not in request.headers
