"""Re-records captures/: runs each agent through `wiretape record` against the scripted upstream.

`make captures`, or `python -m tests.support.make_captures [NAME…]`. The clocks are frozen to the times of the texts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wiretape.demo.customer_service import ROUTE_QUESTION
from wiretape.demo.upstream import Upstream, serve

ROOT = Path(__file__).parent.parent.parent
CAPTURES = ROOT / "captures"
PORT = 8137  # fixed, so that recording again changes no URL
DELAY = 0.12
KEY = "sk-captures-5b1d7c02e94f4a83"  # opens nothing; no tape may hold it

_UPSTREAM = (
    "Recorded from a program of wiretape's own against a scripted upstream on loopback, so times are not a provider's."
)


@dataclass(frozen=True, slots=True)
class Capture:
    """A tape to make: the program that is recorded, and where its texts come from."""

    name: str
    module: str
    arguments: tuple[str, ...]
    provenance: str
    saving: tuple[str, ...] = ()  # arguments for the recording only, which the next capture continues

    @property
    def path(self) -> Path:
        return CAPTURES / f"{self.name}.tape"

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", self.module, *self.arguments]


SESSIONS = "tests/support/subagent_control_sessions.json"
_CONTROL = "tests.support.agents_subagent_control"
_SERVICE = "wiretape.demo.customer_service"
_DEEPSEEK_GUIDE = "a published walk through DeepSeek's chat interface"

CAPTURE_LIST = (
    Capture(
        "subagents",
        "wiretape.demo.subagents",
        (),
        "Texts, ids and token counts from a published packet dump of a supervisor and its calendar agent. The dump "
        "shows calls 2 and 3 by their input alone and abridges repeated texts: calls 2 and 3's model, tools, limit, "
        "ids and answers (but for the texts that later calls repeat) are reconstructed, and their usage is unknown.",
    ),
    Capture(
        "weather-no-tool",
        _SERVICE,
        ("你是谁？", "--clock", "2026-02-28T15:05:30"),
        "Request, answer and token counts from a published packet dump of a customer-service agent; nothing is added.",
    ),
    Capture(
        "weather-one-tool",
        _SERVICE,
        ("--clock", "2026-02-28T15:05:30", "--clock", "2026-02-28T15:23:47"),
        "Requests, answers and token counts from a published packet dump of a customer-service agent. The dump shows "
        "no answer to call 3: its text is the dump's description of it, its usage is unknown. The eighteen minutes "
        "between the turns are in the system prompt's clock only.",
    ),
    Capture(
        "route-two-tools",
        _SERVICE,
        (ROUTE_QUESTION, "--clock", "2026-02-28T15:31:12"),
        "All of it is reconstruction: the published description of this run gives the user's question, the order of "
        "the tools and the final answer, and no packets. The system prompt, tools and dialect are those of "
        "weather-one-tool; the time, the tool calls and the route's data are made up to fit; usage is unknown.",
    ),
    Capture(
        "introduction",
        "wiretape.demo.introduction",
        (),
        f"Question, answer and token counts from {_DEEPSEEK_GUIDE}; the request's `thinking` is as it describes it.",
    ),
    Capture(
        "clock-thinking",
        "tests.support.agents_clock_thinking",
        ("--clock", "2026-06-20T22:34:43"),
        f"Question, tool, first answer with its token counts and the tool's result from {_DEEPSEEK_GUIDE}. The guide "
        "shows the second request from another run (other ids, other reasoning): here the first answer goes back as "
        "it came. The guide shows no second answer: it is reconstructed, its usage is unknown.",
    ),
    Capture(
        "subagent-control",
        _CONTROL,
        ("--seed", "4"),
        "The tools `subagent`, `send_message`, `list_agents` and `report` follow the published documentation of an "
        "agent harness: what they answer, and that every message is the subagent's next turn. The run itself, its "
        "texts and ids are made up; usage is unknown.",
        saving=("--save", SESSIONS),
    ),
    Capture(
        "subagent-control-resumed",
        _CONTROL,
        ("--resume", SESSIONS),
        "The next process of the run on subagent-control.tape: parent and subagent go on with their sessions, and the "
        "subagent, which had ended with its process, is resumed by a message. Made up like its first part.",
    ),
)


def environment(upstream: Upstream) -> dict[str, str]:
    """The agent's environment: where its models are."""
    return {
        **os.environ,
        "DEEPSEEK_BASE_URL": upstream.url,
        "OPENAI_BASE_URL": f"{upstream.url}/v1",
        "DEEPSEEK_API_KEY": KEY,
        "OPENAI_API_KEY": KEY,
    }


def record(capture: Capture, path: Path, upstream: Upstream) -> None:
    """Record one capture."""
    path.unlink(missing_ok=True)
    wiretape = [sys.executable, "-m", "wiretape", "record", "-o", str(path)]
    provenance = ["--provenance", f"{capture.provenance} {_UPSTREAM}"]
    subprocess.run(
        [*wiretape, *provenance, "--", *capture.command, *capture.saving],
        check=True,
        cwd=ROOT,
        env=environment(upstream),
    )


def main(names: Sequence[str]) -> None:
    CAPTURES.mkdir(exist_ok=True)
    with serve(PORT, DELAY) as upstream:
        for capture in CAPTURE_LIST:
            if not names or capture.name in names:
                record(capture, capture.path, upstream)


if __name__ == "__main__":
    main(sys.argv[1:])
