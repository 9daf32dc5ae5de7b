"""Writes the table of docs/cache.md from the rules: `python -m tests.support.cache_docs`."""

from __future__ import annotations

from pathlib import Path

from wiretape.analyze.cache.rules import HOUR, MINUTE, RULES, CacheRule

PAGE = Path(__file__).parent.parent.parent / "docs" / "cache.md"
START, END = "<!-- rules -->\n", "<!-- end of rules -->\n"
HEAD = (
    "| rules | cached is | minimum | steps | kept without use | an intact prefix is served | key | from |\n"
    "|---|---|---|---|---|---|---|---|\n"
)
_HOW = {"automatic": "every request", "marked": "what is marked", "local": "the last prompts"}


def table() -> str:
    return HEAD + "".join(map(row, RULES))


def row(rule: CacheRule) -> str:
    by_model = " / ".join(f"{tokens:,}" for tokens in sorted({tokens for _, tokens in rule.by_model}))
    least = f"{by_model}, by model" if by_model else f"{rule.minimum:,}" if rule.minimum else "unknown"
    kept = span(rule.lifetime) + (f"; {span(rule.long_lifetime)} if asked for" if rule.long_lifetime else "")
    cells = (
        f"`{rule.name}`",
        _HOW[rule.how],
        least,
        str(rule.step) if rule.step > 1 else "–",
        kept,
        "yes" if rule.promised else "not promised",
        f"`{rule.key}`" if rule.key else "–",
        "; ".join(rule.sources),
    )
    return f"| {' | '.join(cells)} |\n"


def span(seconds: int | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{seconds // HOUR} h" if seconds % HOUR == 0 else f"{seconds // MINUTE} min"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(before + START + table() + END + rest.partition(END)[2], encoding="utf-8")
