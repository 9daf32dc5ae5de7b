"""The left pane: the tree of turns, agents, calls and tools, with marks and token counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from wiretape.debug.outline import Key, Mark, Node
from wiretape.model.wording import count_text
from wiretape.views.figures import percent
from wiretape.views.printable import one_line

_SIGNS: tuple[tuple[Mark, str, str], ...] = (
    ("breakpoint", "●", "red"),
    ("disabled", "○", "red"),
    ("error", "✗", "bold red"),
    ("finding", "!", "bold yellow"),
    ("note", "✎", "cyan"),
)
_HERE, _STYLES = "▶", {"turn": "bold", "agent": "bold cyan", "side": "dim", "tool": "magenta", "call": ""}

_WIDTHS = (24, 28, 32, 38, 46, 56, 68)  # possible widths of the tree, in columns
_NARROW, _REST = 90, 24  # screens below this width start with a narrow tree; columns kept for the right pane


class OutlineTree(Tree[Node]):
    """The tree stays the same while the debugger moves; `show_marks` updates only labels whose marks changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # To the ends of the run, not of the list.
        Binding("home", "app.do('goto start')", "start", show=False),
        Binding("end", "app.do('goto end')", "end", show=False),
        Binding("left", "fold", "fold", show=False),
        Binding("right", "unfold", "unfold", show=False),
    ]

    def __init__(self, nodes: Iterable[Node]) -> None:
        super().__init__("", id="outline")
        self.show_root, self.guide_depth, self.auto_expand = False, 2, False
        self._places: dict[Key, TreeNode[Node]] = {}
        self._marks: Mapping[Key, frozenset[Mark]] = {}
        self._content = tuple(nodes)

    def on_mount(self) -> None:
        self.styles.width = _WIDTHS[1] if self.app.size.width < _NARROW else _WIDTHS[3]
        self.fill(self._content)

    def widen(self, direction: int) -> None:
        """Take the next larger (1) or smaller (-1) width that fits the screen."""
        now = self.size.width + 1  # and its border
        wider = [width for width in _WIDTHS if now < width < self.app.size.width - _REST]
        narrower = [width for width in _WIDTHS if width < now]
        choice = wider[:1] if direction > 0 else narrower[-1:]
        if choice:
            self.styles.width = choice[0]

    def fill(self, nodes: Iterable[Node]) -> None:
        """Show these nodes."""
        self.clear()
        self._places.clear()
        self._add(self.root, nodes)
        self.root.expand()

    def _add(self, parent: TreeNode[Node], nodes: Iterable[Node]) -> None:
        for node in nodes:
            label = self._label(node, self._marks.get(node.key, frozenset()))
            if node.children:
                added = parent.add(label, node, expand=True)
                self._add(added, node.children)
            else:
                added = parent.add_leaf(label, node)
            self._places[node.key] = added

    def show_marks(self, marks: Mapping[Key, frozenset[Mark]], here: Key | None) -> None:
        """Show the marks, and move the cursor to the current stop."""
        before, self._marks = self._marks, marks
        for key in before.keys() | marks.keys():
            place = self._places.get(key)
            if place is not None and before.get(key) != marks.get(key) and place.data is not None:
                place.set_label(self._label(place.data, marks.get(key, frozenset())))
        place = self._places.get(here) if here is not None else None
        if place is not None:
            self._reveal(place)

    def _reveal(self, place: TreeNode[Node]) -> None:
        parent = place.parent
        while parent is not None:
            if not parent.is_expanded:
                parent.expand()
            parent = parent.parent
        self.move_cursor(place)
        self.scroll_to_node(place, animate=False)

    def action_fold(self) -> None:
        """Fold the node at the cursor; if it is folded or a leaf, go to its parent."""
        place = self.cursor_node
        if place is None:
            return
        if place.children and place.is_expanded:
            place.collapse()
        elif place.parent is not None and place.parent is not self.root:
            self.move_cursor(place.parent)

    def action_unfold(self) -> None:
        place = self.cursor_node
        if place is not None and place.children:
            place.expand()

    @staticmethod
    def _label(node: Node, marks: frozenset[Mark]) -> Text:
        """`▶●! 3 get_weather  1.2k 87%`: marks, number, tools or finish, input tokens and the cached part of them."""
        label = Text(no_wrap=True, overflow="ellipsis")
        label.append(_HERE if "current" in marks else "", "bold green")
        for mark, sign, style in _SIGNS:
            if mark in marks:
                label.append(sign, style)
        if label:
            label.append(" ")
        if node.step is None or node.kind != "call":
            label.append("agent " if node.kind == "agent" else "", "dim")
            return label.append(one_line(node.label), _STYLES[node.kind])
        call = node.step.call
        label.append(f"{call.number} ", "bold")
        response = call.response
        asks = ", ".join(dict.fromkeys(tool.name for tool in call.tool_calls))
        label.append(one_line(asks or (response.finish if response is not None and response.finish else node.label)))
        usage = call.usage
        if usage is not None and usage.input is not None:
            label.append(f"  {count_text(usage.input)}", "dim")
            if usage.cached is not None and usage.input:
                label.append(f" {percent(usage.cached / usage.input)}", "green" if usage.cached else "dim")
        return label

    def render_label(self, node: TreeNode[Node], base_style: Style, style: Style) -> Text:
        # Without textual's fold arrows: the guides show the structure.
        label = node.label.copy() if isinstance(node.label, Text) else Text(str(node.label))
        label.stylize_before(style)
        folded = bool(node.children) and not node.is_expanded
        return Text.assemble((" … " if folded else "", "dim"), label) if folded else label

    async def _on_click(self, event: events.Click) -> None:
        self.focus()
        await super()._on_click(event)
