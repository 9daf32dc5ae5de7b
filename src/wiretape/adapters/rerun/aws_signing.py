"""Signs requests to Amazon Bedrock (Signature Version 4), with botocore and the credentials that it finds.

botocore is optional, and imported only here: the AWS SDK's own chain of credentials (variables, profiles, SSO, the
machine's role) is what a person has set up. Bedrock's API keys need no signature: they are bearer tokens.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from wiretape.errors import UsageError

_HOST: Final = re.compile(
    r"(?:^|\.)bedrock-runtime(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:vpce\.)?(?:amazonaws\.com(?:\.cn)?|api\.aws)$"
)
_MADE: Final = ("authorization", "x-amz-date", "x-amz-security-token")
_OR_KEY: Final = "  or set AWS_BEARER_TOKEN_BEDROCK to an API key of Bedrock's"


def region_of(url: str) -> str | None:
    """The region of Bedrock's own endpoint; None where a URL leads elsewhere, and nothing is to be signed."""
    found = _HOST.search((urlsplit(url).hostname or "").lower())
    return found["region"] if found is not None else None


def signature(url: str, headers: Iterable[tuple[str, str]], data: bytes, region: str) -> list[tuple[str, str]]:
    """The headers that a POST needs beside these."""
    asked = _botocore("awsrequest").AWSRequest("POST", url, data=data, headers=dict(headers))
    _botocore("auth").SigV4Auth(_credentials(), "bedrock", region).add_auth(asked)
    return [(name.lower(), value) for name, value in asked.headers.items() if name.lower() in _MADE]


def _credentials() -> Any:
    problems = _botocore("exceptions")
    try:
        found = _found(tuple(sorted(pair for pair in os.environ.items() if pair[0].startswith("AWS_"))))
        frozen = found.get_frozen_credentials() if found is not None else None
    except (problems.BotoCoreError, problems.ClientError) as error:  # ClientError: AWS refuses a role, say
        raise UsageError(f"AWS credentials could not be had: {error}\n{_OR_KEY}") from None
    if frozen is None:
        raise UsageError(
            "there are no AWS credentials to sign requests to Bedrock with (AWS_ACCESS_KEY_ID, AWS_PROFILE, …: they "
            f"are looked for as the AWS SDK does)\n{_OR_KEY}"
        )
    return frozen


@lru_cache(1)
def _found(variables: tuple[tuple[str, str], ...]) -> Any:
    """What the chain finds, for these variables: a role is asked for once, and not with each request."""
    return _botocore("session").Session().get_credentials()


def _botocore(module: str) -> Any:
    try:
        return import_module(f"botocore.{module}")
    except ImportError:
        raise UsageError(
            f"requests to Bedrock are signed with botocore, which is not installed: pip install botocore\n{_OR_KEY}"
        ) from None
