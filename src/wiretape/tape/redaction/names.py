"""Which names say that a value is a secret: of headers, of URL parameters, of JSON members. Only lists and lookups.

Headers are an allow list: only values of listed names are kept. What is kept is what explains a run (formats,
versions, limits, timing) and the ids that link exchanges.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache


class Keep(Enum):
    """What becomes of a header's value."""

    YES = "kept, known secrets in it replaced"
    URL = "kept as a URL without its query values"
    CREDENTIAL = "a secret: replaced, and remembered"
    NO = "replaced"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEPT = _words(
    """
    accept accept-charset accept-encoding accept-language content-type content-encoding content-length content-language
    transfer-encoding connection keep-alive upgrade host origin date server via age vary cache-control pragma expires
    etag allow expect range content-range accept-ranges content-disposition
    user-agent x-app x-title originator version x-goog-api-client
    anthropic-version anthropic-beta anthropic-dangerous-direct-browser-access openai-beta openai-version openai-model
    openai-processing-ms x-openai-subagent
    retry-after retry-after-ms x-should-retry server-timing x-envoy-upstream-service-time x-response-time
    link refresh x-robots-tag x-accel-buffering alt-svc strict-transport-security x-content-type-options
    request-id x-request-id x-client-request-id x-amzn-requestid x-amzn-request-id apim-request-id
    x-ms-client-request-id x-ms-request-id x-ms-region x-ms-rai-invoked x-ms-deployment-name
    x-generation-id mistral-correlation-id inference-id x-amz-request-id x-amzn-trace-id traceresponse x-groq-region
    x-correlation-id cf-ray cf-cache-status
    traceparent idempotency-key x-idempotency-key last-event-id
    x-claude-code-session-id x-claude-code-agent-id x-claude-code-parent-agent-id x-claude-remote-session-id
    x-session-id x-parent-session-id x-session-affinity x-deepseek-harness-session-id
    session-id session_id thread-id thread_id conversation_id conversation-id x-conversation-id
    x-codex-turn-metadata x-codex-turn-state x-codex-window-id x-codex-parent-thread-id x-codex-beta-features
    x-initiator x-agent-id x-parent-agent-id x-interaction-id x-interaction-type
    mcp-protocol-version mcp-method mcp-name
    x-amz-target amz-sdk-invocation-id amz-sdk-request x-amz-date x-amz-content-sha256 x-amzn-errortype
    x-amz-bedrock-agent-session-id
    www-authenticate sec-websocket-version sec-websocket-extensions
    x-litellm-call-id x-litellm-model-id x-litellm-version x-litellm-attempted-retries x-litellm-attempted-fallbacks
    x-goog-request-params x-goog-upload-protocol x-goog-upload-command x-goog-upload-status x-goog-upload-offset
    """
)
_KEPT_PREFIXES = (
    "x-stainless-",
    "x-ratelimit-",
    "ratelimit",
    "x-rate-limit-",
    "anthropic-ratelimit-",
    "x-amzn-bedrock-",
    "x-codex-primary-",
    "x-codex-secondary-",
    "access-control-",
    "sec-fetch-",
    "sec-ch-ua",
)
_URLS = frozenset(
    {"location", "content-location", "operation-location", "azure-asyncoperation", "referer", "http-referer"}
)
_CREDENTIAL_HEADERS = _words(
    """
    authorization proxy-authorization x-authorization x-forwarded-authorization authentication x-auth api-key x-api-key
    x-goog-api-key x-goog-iam-authorization-token ocp-apim-subscription-key cookie cookie2 set-cookie set-cookie2
    x-amz-security-token chatgpt-account-id openai-organization openai-project mcp-session-id sec-websocket-protocol
    x-serverless-authorization cf-access-client-id cf-access-client-secret dpop
    """
)
_CREDENTIAL_HEADER_WORDS = ("token", "secret", "password", "passwd", "apikey", "api-key", "api_key", "credential")
_CREDENTIAL_HEADER_ENDS = ("-auth", "-key", "_key", "-authorization", "-jwt", "-signature")
# Names that end like a credential's name and are harmless.
_NO_CREDENTIAL_HEADERS = frozenset({"idempotency-key", "x-idempotency-key", "sec-websocket-key", "x-cache-key"})


@lru_cache(2048)
def keep_header(name: str) -> Keep:
    """What becomes of a header's value; `name` in lower case."""
    if name in _CREDENTIAL_HEADERS:
        return Keep.CREDENTIAL
    if name in _KEPT or name.startswith(_KEPT_PREFIXES):
        return Keep.YES
    if name in _URLS:
        return Keep.URL
    if name in _NO_CREDENTIAL_HEADERS:
        return Keep.NO
    if any(word in name for word in _CREDENTIAL_HEADER_WORDS) or name.endswith(_CREDENTIAL_HEADER_ENDS):
        return Keep.CREDENTIAL
    return Keep.NO


class Member(Enum):
    """What a JSON member's name says about its value."""

    PLAIN = "nothing"
    SECRET = "a credential"
    MAYBE = "a credential, if it looks like one"
    LINK = "an id that links things"
    OPAQUE = "provider state or media: bytes that only their maker reads"


_ENDS = tuple(
    _words(
        """
        apikey authorization authorizationtoken accesstoken refreshtoken idtoken authtoken bearertoken sessiontoken
        securitytoken apitoken usertoken bottoken oauthtoken personalaccesstoken githubtoken gitlabtoken hftoken
        jwttoken secret secretkey secretaccesskey accesskey accesskeyid privatekey signingkey encryptionkey masterkey
        servicekey subscriptionkey accountkey password passwd passphrase setcookie clientassertion
        """
    )
)
_SECRETS = _words("cookie pwd jwt mcpsessionid chatgptaccountid dbpass userpass")
_MAYBE = _words("token auth credential bearer pass sessionkey creds userpwd dbpwd basicauth npmauth")
# Tokens of pages, of texts and of designs.
_NO_TOKENS = tuple(
    _words(
        """
        pagetoken nexttoken continuationtoken synctoken progresstoken cursortoken paginationtoken resumetoken
        startingtoken changetoken skiptoken canceltoken cancellationtoken padtoken eostoken bostoken unktoken masktoken
        septoken clstoken specialtoken endtoken starttoken stoptoken csstoken designtoken colortoken inputtoken
        outputtoken prompttoken completiontoken cachedtoken reasoningtoken totaltoken thinkingtoken texttoken
        audiotoken imagetoken maxtoken mintoken numtoken cachetoken newtoken budgettoken counttoken
        """
    )
)
# Words before `key` that make a credential, beside the names above; in capitals others do, too: `STRIPE_KEY`.
_KEYS = _words(
    """
    auth client app admin deploy ssh gpg storage shared webhook license openai anthropic azure stripe gemini google groq
    mistral deepseek cohere aws sendgrid twilio huggingface together replicate openrouter perplexity xai
    """
)
_NO_KEYS = _words(
    """
    primary foreign sort partition public cache idempotency routing object row parent index group unique dedupe range
    hash lookup registry hot
    """
)
# Provider state that ends like a credential and must come back as it was given.
_OPAQUE = _words(
    """
    encryptedcontent signature thoughtsignature reasoningopaque encryptedindex fallbackcredittoken continuationtoken
    redactedcontent xcodexturnstate b64json filedata imagedata requeststate encryptedstdout
    """
)
_LINKS = frozenset({"id", "ids", "uuid", "guid", "ref", "parent", "progresstoken", "nextpagetoken", "pagetoken"})
_FOLD = re.compile(r"[^a-z0-9]+")
_LAST_WORDS = re.compile(r"((?<![a-z])[a-z]+|[A-Z][a-z]+|(?<![A-Z])[A-Z]+)[_.-]?([Kk]ey|KEY)s?\Z")


@lru_cache(8192)
def member(name: str) -> Member:
    """What a member's name says about its value, however it is spelled (`api_key`, `apiKey`, `API-Key`, `apiKeys`)."""
    if len(name) > 64:
        return Member.PLAIN
    folded = _FOLD.sub("", name.lower())
    if folded in _OPAQUE:
        return Member.OPAQUE
    says = _credential(folded, name)
    if says is Member.PLAIN and folded.endswith("s"):
        says = _credential(folded[:-1], name)
    if says is not Member.PLAIN:
        return says
    if folded in _LINKS or name.endswith(("_id", "-id", "Id", "ID", "_ids", "Ids")):
        return Member.LINK
    return Member.PLAIN


def _credential(folded: str, name: str) -> Member:
    if folded.startswith(("max", "num", "min")) or "ratelimit" in folded:
        return Member.PLAIN
    if folded in _SECRETS or folded.endswith(_ENDS):
        return Member.SECRET
    if folded in _MAYBE or (folded.endswith("token") and not folded.endswith(_NO_TOKENS)):
        return Member.MAYBE
    if folded.endswith("key") and (words := _LAST_WORDS.search(name)):
        before = words[1].lower()
        if before in _KEYS or (name.isupper() and before not in _NO_KEYS):
            return Member.MAYBE
    return Member.PLAIN


# Names under which a JSON Schema lists properties: their members are definitions, not values.
SCHEMA_MEMBERS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentRequired", "dependentSchemas", "dependencies"}
)
_PARAMETERS = _words(
    """
    key apikey token accesstoken refreshtoken idtoken authtoken auth authorization sig signature xamzsignature
    xamzsecuritytoken xamzcredential xgoogsignature xgoogcredential clientsecret clientassertion secret password passwd
    pwd jwt sessiontoken subscriptionkey awsaccesskeyid codeverifier subjecttoken actortoken devicecode
    """
)
# Members of an OAuth token request, a JSON object with `grant_type`. The same names in forms: see `find_grants`.
GRANT_MEMBERS = frozenset({"code", "assertion", "code_verifier", "device_code"})


@lru_cache(2048)
def secret_parameter(name: str) -> bool:
    """Whether a URL or form parameter holds a credential."""
    return _FOLD.sub("", name.lower()) in _PARAMETERS or member(name) is Member.SECRET
