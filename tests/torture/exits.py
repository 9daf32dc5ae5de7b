"""Live requests with secrets of every kind, replayed against a tape without them: every output is searched for them.

A try is one secret in one output. The outputs are the program's stdout (which shows the 400 bodies), stderr, the
report, `wiretape doctor`, and of pytest the terminal and the JUnit file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.canaries import PROGRAM, VARIABLE, Planted, planted, printed, token, write_tape
from tests.torture.campaign import WIRETAPE, Campaign, start

QUIET = {name: value for name, value in os.environ.items() if not name.endswith(("_BASE_URL", "_API_KEY"))}
TEST = """
import base64, json, httpx, pytest, wiretape

PLAN = json.load(open("plan.json"))

@pytest.mark.parametrize("number", range(len(PLAN)))
def test_one(number):
    asked = PLAN[number]
    with wiretape.replay("exits.tape"):
        httpx.post("https://api.openai.com/v1" + asked["target"], headers=asked["headers"],
                   content=base64.b64decode(asked["body"]))
"""


def outputs(cases: list[Planted], environ: dict[str, str], argv: list[str], folder: Path) -> dict[str, str]:
    """What the commands print, by the name of the output."""
    write_tape(folder / "exits.tape", cases)
    (folder / "plan.json").write_text(json.dumps([case.asked() for case in cases]))
    (folder / "program.py").write_text(PROGRAM)
    (folder / "test_it.py").write_text(TEST)
    program = [sys.executable, "program.py", "plan.json", *argv]
    replay = [WIRETAPE, "replay", "-v", "exits.tape", "--report", "report.json", "--", *program]
    tests = [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "--junit-xml=junit.xml"]
    found: dict[str, str] = {}
    for name, command in (("replay", replay), ("doctor", [WIRETAPE, "doctor", *program]), ("pytest", tests)):
        done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, encoding="utf-8", timeout=300)
        found |= {f"stdout of {name}": done.stdout, f"stderr of {name}": done.stderr}
    return found | {name: (folder / name).read_text() for name in ("report.json", "junit.xml")}


def round_of(campaign: Campaign) -> None:
    source = campaign.source
    password = token(source, 16)
    environ = QUIET | {VARIABLE: token(source, 32), "ANTHROPIC_BASE_URL": f"http://me:{password}@127.0.0.1:9/v1"}
    cases = planted(source, environ[VARIABLE])
    source.shuffle(cases)
    key, url, header = (token(source, source.randint(16, 40)) for _ in range(3))
    argv = ["--api-key", key, f"https://u:{url}@h/x", "-H", f"Authorization: Bearer {header}"]
    others = [("argv", key), ("argv-url", url), ("argv-header", header), ("base-url", password)]
    with TemporaryDirectory(prefix="wiretape-exits-") as folder:
        found = outputs(cases, environ, argv, Path(folder))
    secrets = [*cases, *(Planted(kind, secret, b"", b"") for kind, secret in others)]
    campaign.tried["secrets"] += len(secrets)
    campaign.tried["outputs"] += len(found)
    campaign.tried["misses"] += len(json.loads(found["report.json"])["missed"])
    if not json.loads(found["report.json"])["missed"] or "no call on" not in found["junit.xml"]:
        campaign.fail("no miss was reported: nothing was tried")
    for leak in printed(secrets, found):
        campaign.fail(leak)


def main(argv: list[str]) -> int:
    campaign = start("exits", argv, 20)
    for _ in range(campaign.count):
        round_of(campaign)
    return campaign.finish()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
