"""Writes the lists of docs/debugger.md from the debugger's tables: `python -m tests.support.debugger_docs`."""

from __future__ import annotations

from pathlib import Path

from wiretape.debug.commands.registry import COMMANDS, GROUPS, DebugCommand
from wiretape.debug.commands.topics import TOPICS
from wiretape.debug.expression.names import NAMES

PAGE = Path(__file__).parent.parent.parent / "docs" / "debugger.md"


def page() -> str:
    """The page with its lists as they are now."""
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (("commands", command_lines()), ("names", name_lines())):
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = text.partition(start)
        after = rest.partition(end)[2]
        text = before + start + "\n".join(lines) + "\n" + end + after
    return text


def command_lines() -> list[str]:
    lines = []
    for group, title in GROUPS.items():
        lines += [f"### {title[0].upper()}{title[1:]}", ""]
        for command in COMMANDS.values():
            if command.group == group:
                lines += [_entry(command)]
        lines.append("")
    return lines[:-1]


def _entry(command: DebugCommand) -> str:
    usage = f"{command.name} {command.arguments}".strip().replace("|", "\\|")
    also = f" ({', '.join(f'`{alias}`' for alias in command.aliases)})" if command.aliases else ""
    said = f"- **`{usage}`**{also}: {command.help}.".replace("\\|", "|")
    more = f" {command.more}" if command.more else ""
    topics = (
        " " + "; ".join(f"`{name}`: {topic.help}" for name, topic in TOPICS.items()) + "." if _is_info(command) else ""
    )
    examples = f" Such as `{'`, `'.join(command.examples)}`." if command.examples else ""
    return said + more + topics + examples


def _is_info(command: DebugCommand) -> bool:
    return command.name == "info"


def name_lines() -> list[str]:
    lines = ["| name | known at | what it is |", "|---|---|---|"]
    return lines + [f"| `{name.name}` | {name.known_from} | {name.help} |" for name in NAMES.values()]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
