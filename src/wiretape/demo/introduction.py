"""The smallest program that calls a model: one question, one answer, no tools."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from wiretape.demo.client import ModelClient

QUESTION = "你好，请用一句话自我介绍。"
MODEL = "deepseek-v4-pro"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Ask a model one question.")
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--stream", action="store_true", help="ask the model to stream its answer")
    options = parser.parse_args(argv)
    messages = [{"role": "user", "content": options.question}]
    body = {"model": MODEL, "messages": messages, "thinking": {"type": "enabled"}, "stream": options.stream}
    with ModelClient("DEEPSEEK", "https://api.deepseek.com") as client:
        if options.stream:
            for event in client.stream("/chat/completions", body):
                for choice in event["choices"]:
                    print(choice["delta"].get("content") or "", end="", flush=True)
            print()
        else:
            print(client.ask("/chat/completions", body)["choices"][0]["message"]["content"])


if __name__ == "__main__":
    main()
