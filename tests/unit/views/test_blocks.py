"""Every kind of block shows what it holds, literally, and says what it leaves out."""

from __future__ import annotations

from rich.console import Group
from tests.support.views import message, shown

from wiretape.model.call import Block, Media, Message, Reasoning, Text, ToolCall, ToolResult, Unknown
from wiretape.views.blocks import message_view


def drawn(*blocks: Block, full: bool = False, names: dict[str, str] | None = None) -> str:
    return shown(Group(*message_view(message("assistant", *blocks), names or {}, full=full)))


def test_text_is_printed_literally() -> None:
    assert drawn(Text("[bold]x[/] [/] :smile: \x1b[2J")) == ("assistant\n  [bold]x[/] [/] :smile: \\x1b[2J\n")


def test_long_lines_of_wide_characters_wrap_inside_the_indent() -> None:
    assert drawn(Text("日" * 50)) == "assistant\n  " + "日" * 39 + "\n  " + "日" * 11 + "\n"


def test_refusals_and_reasoning_are_named() -> None:
    assert drawn(Text("No.", refusal=True), Reasoning("Hm.", opaque="abcd"), Reasoning("In short.", summary=True)) == (
        "assistant\n"
        "  refusal\n"
        "  No.\n"
        "  reasoning\n"
        "    Hm.\n"
        "    opaque state: 4 characters\n"
        "  reasoning summary\n"
        "    In short.\n"
    )


def test_tool_calls_spell_their_arguments_out() -> None:
    assert drawn(ToolCall("call_1", "weather", '{"city": "成都市"}')) == (
        'assistant\n  calls weather  call_1\n    {\n      "city": "成都市"\n    }\n'
    )


def test_arguments_that_are_no_json_are_shown_as_they_are() -> None:
    assert drawn(ToolCall(None, "weather", '{"city": "成')) == 'assistant\n  calls weather\n    {"city": "成\n'
    assert drawn(ToolCall(None, "now", "")) == "assistant\n  calls now\n    (no arguments)\n"


def test_tool_results_are_named_by_the_call_they_answer() -> None:
    names = {"call_1": "weather"}
    assert drawn(ToolResult("call_1", None, "sunny", is_error=True), names=names) == (
        "assistant\n  result of weather  an error  call_1\n    sunny\n"
    )
    assert drawn(ToolResult(None, "weather", "")) == "assistant\n  result of weather\n    (empty)\n"


def test_parts_media_and_unknown_blocks_are_not_dropped() -> None:
    assert drawn(
        ToolResult(None, "look", "", parts=({"type": "image"},)),
        Media("image", {"data": "A" * 100}),
        Unknown("hologram", {"type": "hologram"}),
    ) == (
        "assistant\n"
        "  result of look\n"
        "    {\n"
        '      "type": "image"\n'
        "    }\n"
        "  image (112 characters of JSON)\n"
        "  block of unknown type 'hologram'\n"
        "    {\n"
        '      "type": "hologram"\n'
        "    }\n"
    )


def test_what_is_long_says_how_much_more_there_is() -> None:
    screen = drawn(Text("x" * 5000))
    assert "… 1,000 more characters; --full shows all" in screen
    assert "more characters" not in drawn(Text("x" * 5000), full=True)
    assert drawn(Text("x" * 5000), full=True).count("x") == 5000
    assert "… 81 more characters" in drawn(Text("y\n" * 100))


def test_a_message_of_nothing_and_a_cache_marker_say_so() -> None:
    empty = Message("user", (), cache_marked=True)
    assert shown(Group(*message_view(empty, {}, "messages[3]"))) == "user  messages[3]  cache marker\n  (nothing)\n"
