import pytest

from wiretape.adapters.routing.hosts import Hosts, is_known_provider, is_loopback, provider_within


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "app.localhost", "127.0.0.1", "::ffff:127.0.0.1", "127.8.0.1", "::1", "[::1]"]
)
def test_loopback_by_name_or_address(host: str) -> None:
    assert is_loopback(host)
    assert Hosts().recorded(host, 8080)


@pytest.mark.parametrize("host", ["localhost.example.com", "128.0.0.1", "10.0.0.1", "0.0.0.0", "notlocalhost", ""])
def test_what_only_looks_like_loopback_is_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "api.openai.com",
        "eu.api.openai.com",
        "API.Anthropic.com.",
        "api.deepseek.com",
        "mycorp.openai.azure.com",
        "bedrock-runtime.eu-central-1.amazonaws.com",
        "us-central1-aiplatform.googleapis.com",
        "ark.cn-beijing.volces.com",
    ],
)
def test_known_providers(host: str) -> None:
    assert is_known_provider(host)


@pytest.mark.parametrize("host", ["openai.com", "evilapi.openai.com.example", "s3.amazonaws.com", "www.googleapis.com"])
def test_neighbours_of_providers_are_not_recorded(host: str) -> None:
    assert not Hosts().recorded(host, 443)


def test_a_glob_adds_hosts() -> None:
    hosts = Hosts(["*.corp.example", "tools.example:8443"])
    assert hosts.recorded("LLM.corp.example", 443)
    assert hosts.recorded("tools.example", 8443)
    assert not hosts.recorded("tools.example", 443)
    assert not hosts.recorded("corp.example", 443)


def test_everything_is_everything() -> None:
    assert Hosts(everything=True).recorded("anything.example", 1)


@pytest.mark.parametrize(
    ("glob", "provider"),
    [
        ("*", "api.openai.com"),
        ("*:443", "api.openai.com"),
        ("API.anthropic.com.", "api.anthropic.com"),
        ("api.x.ai:443", "api.x.ai"),
        ("eu.api.openai.com", "*.api.openai.com"),
        ("my-*.openai.azure.com", "*.openai.azure.com"),
        ("*.us-east-1.amazonaws.com", "bedrock-runtime.*.amazonaws.com"),
        ("api.[a-m]istral.a?", "api.mistral.ai"),
        ("*.googleapis.com", "generativelanguage.googleapis.com"),
    ],
)
def test_a_glob_that_could_mean_a_provider_names_it(glob: str, provider: str) -> None:
    assert provider_within(glob) == provider


@pytest.mark.parametrize(
    "glob",
    [
        "api.weather.example",
        "*.corp.example",
        "127.0.0.1:8080",
        "s3.*.amazonaws.com",
        "localhost",
        "::1",
        "[::1]:80",
        "",
    ],
)
def test_a_glob_of_the_agents_own_tools_means_no_provider(glob: str) -> None:
    assert provider_within(glob) is None
