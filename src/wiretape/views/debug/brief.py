"""Messages cut down to what fits beside others on a screen: the beginning of each block, and how much more there is."""

from __future__ import annotations

from dataclasses import replace

from wiretape.model.call import Block, Message, Reasoning, Text, ToolCall, ToolResult
from wiretape.model.wording import plural
from wiretape.views.blocks import pretty_arguments

LINES, CHARACTERS = 8, 600
MOST_BLOCKS = 20
_LONG = 4  # times what is shown: an argument so long is not spelled out before it is cut


def brief_text(text: str, full: bool = False) -> str:
    """The text, or its first lines and how much more there is."""
    if full:
        return text
    start = "\n".join(text[: CHARACTERS + 1].split("\n")[:LINES])[:CHARACTERS]
    if len(start) >= len(text):
        return text
    return f"{start.rstrip()}\n… {plural(len(text) - len(start), 'more character')}; show full shows all"


def brief(message: Message) -> Message:
    """The message with every block cut down; itself where nothing is long."""
    blocks = tuple(_block(block) for block in message.blocks[:MOST_BLOCKS])
    left = len(message.blocks) - len(blocks)
    if left:
        blocks += (Text(f"… {plural(left, 'more block')}; show full shows all"),)
    elif all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
        return message
    return replace(message, blocks=blocks)


def _block(block: Block) -> Block:
    match block:
        case Text(text=text) | Reasoning(text=text) | ToolResult(text=text):
            short = brief_text(text)
            return block if short is text else replace(block, text=short)
        case ToolCall(arguments=arguments) if len(arguments) > CHARACTERS:
            spelled = pretty_arguments(arguments) if len(arguments) < _LONG * CHARACTERS else arguments
            return replace(block, arguments=brief_text(spelled))
        case _:
            return block
