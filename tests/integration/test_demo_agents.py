"""The demo's agents against the scripted upstream, without wiretape in between."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from wiretape.demo.customer_service import ROUTE_QUESTION
from wiretape.demo.upstream import Upstream, serve

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with serve() as running:
        yield running


def run(module: str, *arguments: str, url: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "DEEPSEEK_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "no-key",
        "NO_PROXY": "127.0.0.1",
    }
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, env=environment, timeout=60)


@pytest.mark.parametrize(
    ("module", "arguments", "last_line"),
    [
        ("subagents", [], "已经帮你安排好了：明天（2025-06-11）下午 3 点和张三的产品评审会，时长 1 小时。"),
        ("subagents", ["--stream"], "已经帮你安排好了：明天（2025-06-11）下午 3 点和张三的产品评审会，时长 1 小时。"),
        ("customer_service", ["你是谁？"], "我是强子开发的智能客服，能够为您提供信息咨询、问题解答等服务。"),
        ("customer_service", [], "明天成都的天气为多云，东北风 2 级，气温 10℃到 18℃，湿度 76%。"),
        (
            "customer_service",
            [ROUTE_QUESTION],
            "如需驾驶路线（若临时遇雨或偏好驾驶），可直接告知调整为驾车方案。祝您出行顺利！",
        ),
        ("introduction", [], "你好！我是DeepSeek，由深度求索公司创造的AI助手，免费且支持超长上下文，很高兴为你服务～"),
        (
            "introduction",
            ["--stream"],
            "你好！我是DeepSeek，由深度求索公司创造的AI助手，免费且支持超长上下文，很高兴为你服务～",
        ),
    ],
)
def test_agent_answers(module: str, arguments: list[str], last_line: str, upstream: Upstream) -> None:
    done = run(f"wiretape.demo.{module}", *arguments, url=upstream.url)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == last_line


def test_agent_with_the_openai_sdk_answers(upstream: Upstream) -> None:
    done = run("tests.support.agents_clock_thinking", "--clock", "2026-06-20T22:34:43", url=upstream.url)
    assert (done.stdout, done.stderr) == ("现在北京时间是2026年06月20日星期六 22:34:43。\n", "")


def test_a_refused_agent_prints_the_reason(upstream: Upstream) -> None:
    done = run("wiretape.demo.introduction", "写一首诗", url=upstream.url)
    assert done.returncode == 1
    assert done.stderr == (
        f"the model at {upstream.url} refused (400): "
        "the scripted upstream has no answer to this POST /chat/completions\n"
    )


def test_an_agent_without_upstream_prints_the_url() -> None:
    with serve() as gone:
        url = gone.url
    done = run("wiretape.demo.subagents", url=url)
    assert done.returncode == 1
    assert done.stderr.startswith(f"no answer from the model at {url}: ")


@pytest.mark.parametrize("body", [b"", b"[]", b"{nonsense", b'{"messages": "no list"}'])
def test_upstream_refuses_bodies_that_are_not_requests(body: bytes, upstream: Upstream) -> None:
    response = httpx.post(f"{upstream.url}/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "not_scripted"
