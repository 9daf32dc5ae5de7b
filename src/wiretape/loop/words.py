"""What in a user's message is the user's own words, and what a harness put there."""

from __future__ import annotations

import re

from wiretape.model.call import Message, Text

# Blocks that harnesses write into user messages. They come and go between calls and are nobody's question.
_TAGS = (
    "system-reminder|task-notification|environment_context|user_instructions|session_context|turn_aborted"
    "|subagent_notification|local-command-stdout|local-command-caveat|permissions instructions"
)
_HARNESS = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1>", re.DOTALL)
# Some frameworks send tool results as plain text in a user message.
_RESULT_AS_TEXT = re.compile(r"Observations?:\s")


def words(text: str) -> str:
    """A text without what a harness put into it."""
    if "</" in text:
        text = _HARNESS.sub("", text)
    return text.strip()


def user_words(message: Message) -> str:
    """The user's own words in a message; empty for other roles, tool results and reminders."""
    if message.role != "user":
        return ""
    said = words("\n".join(block.text for block in message.blocks if isinstance(block, Text)))
    return "" if _RESULT_AS_TEXT.match(said) else said


def is_result_as_text(message: Message) -> bool:
    """Whether a user message is really a tool result that travels as text."""
    first = next((block.text for block in message.blocks if isinstance(block, Text)), "")
    return message.role == "user" and _RESULT_AS_TEXT.match(first.strip()) is not None


def last_words(messages: tuple[Message, ...]) -> str:
    """The latest of the user's words among messages."""
    return next((said for message in reversed(messages) if (said := user_words(message))), "")


def after_answer(messages: tuple[Message, ...]) -> int:
    """Index of the first message after the last answer; 0 if there is no answer."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return index + 1
    return 0


def answer_text(messages: tuple[Message, ...]) -> str | None:
    """The last text of an answer."""
    texts = [
        block.text
        for message in messages
        for block in message.blocks
        if isinstance(block, Text) and block.text.strip() and message.role == "assistant"
    ]
    return texts[-1] if texts else None
