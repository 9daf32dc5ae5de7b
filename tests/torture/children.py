"""Children of marked tests: random routes, environments and clients must get the recorded answer, or an error.

Each project has tests that start children against a live model on loopback. A call that reaches the model is an
escape; a child with an unrecorded request must fail its test. `python -m tests.torture.children --count N` starts N
children; it drives the pytest of the Python that it is started with.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.children import CLIENT, HEAD, ROUTES, ROUTES_WITH_ENVIRONMENT, function
from tests.support.counting import CountingModel
from tests.torture.campaign import Campaign, start

_OF_A_PROJECT = 24
_ENVIRONMENTS = {
    "empty": "{}",
    "a PATH": "{'PATH': os.environ.get('PATH', '')}",
    "a copy": "dict(os.environ)",
    "itself": "os.environ",
    "one more": "{**os.environ, 'OTHER': '1'}",
    "without proxies": "{name: os.environ[name] for name in os.environ if 'proxy' not in name.lower()}",
    "without NO_PROXY": "{name: os.environ[name] for name in os.environ if name.upper() != 'NO_PROXY'}",
    "a key": "{**os.environ, 'OPENAI_API_KEY': 'sk-of-this-child'}",
    "a timeout": "{**os.environ, 'OPENAI_TIMEOUT': '5', 'HOME': os.getcwd()}",
}
_PROJECT = """{head}
{functions}
CASES = {{{cases}}}

@pytest.mark.parametrize("case", CASES)
@pytest.mark.wiretape("t")
def test_child(case, tmp_path):
    route, text, how = CASES[case]
    said = route(tmp_path / "out", text, how)
    print("SAID", case, said)
"""
_RECORDING = """
import os, httpx, pytest

@pytest.mark.wiretape("t")
def test_record():
    body = {"model": "counting-1", "messages": [{"role": "user", "content": "hello"}]}
    httpx.post(os.environ["MODEL_URL"] + "/chat/completions", json=body)
"""


def main(argv: list[str]) -> int:
    campaign = start("children", argv, 240)
    done = 0
    while done < campaign.count:
        number = min(_OF_A_PROJECT, campaign.count - done)
        with CountingModel() as model, TemporaryDirectory(prefix="wiretape-torture-") as directory:
            _project(campaign, model, Path(directory), number)
        done += number
    return campaign.finish()


def _project(campaign: Campaign, model: CountingModel, directory: Path, number: int) -> None:
    environ = {**os.environ, "MODEL_URL": model.url, "PYTHONPATH": str(directory), "PYTEST_ADDOPTS": ""}
    if campaign.source.random() < 0.7:
        environ["OPENAI_BASE_URL"] = model.url
    if campaign.source.random() < 0.3:
        environ |= {"NO_PROXY": "localhost,127.0.0.1", "no_proxy": "localhost,127.0.0.1"}
    (directory / "client.py").write_text(f"DEFAULT = {model.url!r}\n{CLIENT}", encoding="utf-8")
    (directory / "test_record.py").write_text(_RECORDING, encoding="utf-8")
    _pytest(directory, environ, "test_record.py", "--wiretape-mode=once")
    model.asked.clear()
    cases = [_case(campaign.source, at) for at in range(number)]
    text = _PROJECT.format(
        head=HEAD,
        functions="\n".join(code for _, code, _, _ in cases),
        cases=", ".join(f"{name!r}: (route_{at}, {text!r}, {how!r})" for at, (name, _, text, how) in enumerate(cases)),
    )
    (directory / "test_children.py").write_text(text, encoding="utf-8")
    printed = _pytest(directory, environ, "test_children.py", "-rA", "-W", "error")
    _judge(campaign, printed, cases, model)


def _case(source: random.Random, at: int) -> tuple[str, str, str, str]:
    """A name, the function that starts the child, what it asks, and how."""
    how, text = source.choice(("base URL", "proxy")), source.choice(("hello", "hello", "other"))
    if source.random() < 0.5:
        (route, code), (label, env) = source.choice(list(ROUTES.items())), ("inherited", "None")
    else:
        route, code = source.choice(list(ROUTES_WITH_ENVIRONMENT.items()))
        label, env = source.choice(list(_ENVIRONMENTS.items()))
    return f"{at}: {route}, {label}, {how}, {text}", function(f"route_{at}", code, env), text, how


def _judge(campaign: Campaign, printed: str, cases: list[tuple[str, str, str, str]], model: CountingModel) -> None:
    said = dict(re.findall(r"^SAID (\d+): .*?(answer \d+ to: \w+|refused.*)$", printed, re.MULTILINE))
    for at, (name, _, text, _) in enumerate(cases):
        campaign.tried["children"] += 1
        answer = said.get(str(at), "nothing")
        passed = f"PASSED test_children.py::test_child[{name}]" in printed
        if answer.startswith("answer") and answer != "answer 1 to: hello":
            campaign.tried["escapes"] += 1
            campaign.fail(
                f"{name}: the live model answered ({answer}), and the test {'passed' if passed else 'failed'}"
            )
        elif text == "hello" and not (passed and answer.startswith("answer")):
            campaign.fail(f"{name}: it was to be answered, and got: {answer}")
        elif text == "other" and passed:
            campaign.fail(f"{name}: it was to fail its test, and got: {answer}")
    if model.asked:
        campaign.tried["live calls"] += len(model.asked)
        campaign.fail(f"the live model was asked {len(model.asked)} times in a project of {len(cases)} children")


def _pytest(directory: Path, environ: dict[str, str], *args: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:hypothesispytest", *args]
    done = subprocess.run(command, cwd=directory, env=environ, capture_output=True, text=True, timeout=1200)
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
