"""``explore()``: widgets that mirror an :class:`~ragdiag.display.explorer_state.ExplorerState`.

Core controls only, no ``Output`` and no JavaScript of our own. The query is an ``HTML`` widget
whose value is the escaped fragment that a repr shows. Without a kernel the static HTML of the
object stands in the place of the widgets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from ragdiag.display import html, text
from ragdiag.display.explorer_state import Choice, ExplorerState, state_of
from ragdiag.display.html import environment

__all__ = ["Explorer", "explore"]

LIST_WIDTH = "300px"
LIST_HEIGHT = "460px"
EVERYTHING = ""


def explore(obj: Any) -> Explorer:
    """Return a widget to filter, search and step through the queries of `obj`.

    Parameters
    ----------
    obj : Results or Comparison
        What to explore.
    """
    return Explorer(obj)


class Explorer(widgets.VBox):  # type: ignore[misc]
    """Filters, a search box, the list of queries and the whole of one query.

    Attributes
    ----------
    state : ExplorerState
        Filters, search, order and place; the widgets show nothing else.
    selected : Results or Comparison
        The queries that match, for the next cell.
    """

    def __init__(self, obj: Any) -> None:
        self.state: ExplorerState[Any] = state_of(obj)
        self._mirroring = False
        self.filters = {choice.column: _dropdown(choice) for choice in self.state.choices}
        self.sort = widgets.Dropdown(
            options=list(self.state.orders), description="Sort", layout=_wide(260), style=_style(40)
        )
        self.search = widgets.Text(
            description="Search",
            placeholder="questions, answers, chunks",
            layout=_wide(380),
            style=_style(50),
        )
        self.previous = widgets.Button(description="Previous", layout=_wide(90))
        self.next = widgets.Button(description="Next", layout=_wide(90))
        self.counter = widgets.Label()
        self.position = widgets.Label()
        self.page = widgets.Label()
        self.list = widgets.Select(
            description="Queries",
            layout=widgets.Layout(
                width=LIST_WIDTH, height=LIST_HEIGHT, flex_flow="column", align_items="stretch"
            ),
            style=_style(60),
        )
        self.query = widgets.HTML(
            layout=widgets.Layout(flex="1 1 0", min_width="0", overflow="auto hidden")
        )
        self._connect()
        super().__init__(self._arranged())
        self._mirror()

    @property
    def selected(self) -> Any:
        """The queries that match, as results or a comparison."""
        return self.state.selected

    def _arranged(self) -> list[widgets.Widget]:
        row = widgets.Layout(flex_flow="row wrap", align_items="center")
        filters = widgets.Box([*self.filters.values(), self.sort], layout=row)
        steps = widgets.Box(
            [self.search, self.counter, self.previous, self.position, self.next], layout=row
        )
        key = widgets.Label("!! major, ! warning")
        column = widgets.Layout(width=LIST_WIDTH, flex="0 0 auto", margin="0 18px 0 0")
        side = widgets.VBox([self.list, self.page, key], layout=column)
        return [filters, steps, widgets.HBox([side, self.query])]

    # -- from the widgets to the state ------------------------------------------------------------

    def _connect(self) -> None:
        for column, dropdown in self.filters.items():
            dropdown.observe(self._chooser(column), names="value")
        self.sort.observe(lambda change: self._do(self.state.sort, change["new"]), names="value")
        self.search.observe(lambda change: self._do(self.state.find, change["new"]), names="value")
        self.list.observe(self._listed, names="value")
        self.previous.on_click(lambda _: self._do(self.state.step, -1))
        self.next.on_click(lambda _: self._do(self.state.step, 1))

    def _chooser(self, column: str) -> Callable[[Any], None]:
        def chosen(change: Any) -> None:
            self._do(self.state.choose, column, change["new"] or None)

        return chosen

    def _listed(self, change: Any) -> None:
        if change["new"] is not None:
            self._do(self.state.go_to, change["new"])

    def _do(self, verb: Callable[..., None], *arguments: Any) -> None:
        """Change the state and show it, unless this change came from showing it."""
        if self._mirroring:
            return
        verb(*arguments)
        self._mirror()

    # -- from the state to the widgets ------------------------------------------------------------

    def _mirror(self) -> None:
        self._mirroring = True
        try:
            page = self.state.page
            with self.list.hold_sync():
                if tuple(page) != self.list.options:
                    self.list.options = page
                self.list.value = self.state.current
            self.counter.value = self.state.counter
            self.position.value = self.state.position
            self.page.value = self.state.page_words
            self.previous.disabled = self.state.place == 0
            self.next.disabled = self.state.place >= len(self.state) - 1
            self.query.value = self._body()
        finally:
            self._mirroring = False

    def _body(self) -> str:
        shown = self.state.view()
        if shown is None:
            return environment("inline").get_template("nothing.html").render()
        return html.render_view(shown)

    # -- without a kernel -------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"Explorer, {self.state.counter}: run the cell to use it; .selected has the queries"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the widgets, and the static display for where they cannot live."""
        shown: dict[str, Any] = super()._repr_mimebundle_(include=include, exclude=exclude) or {}
        shown["text/plain"] = f"{self!r}\n{text.render(self.state.obj)}"
        shown["text/html"] = html.render(self.state.obj)
        return shown


def _dropdown(choice: Choice) -> widgets.Dropdown:
    total = sum(number for name, number in choice.options if name != "all failures")
    options = [(f"all ({total:,})", EVERYTHING)]
    options += [(f"{name} ({number:,})", name) for name, number in choice.options]
    width = 8 * len(choice.label) + 8
    return widgets.Dropdown(
        options=options,
        value=EVERYTHING,
        description=choice.label,
        layout=_wide(width + 190),
        style=_style(width),
    )


def _wide(pixels: int) -> widgets.Layout:
    return widgets.Layout(width=f"{pixels}px")


def _style(pixels: int) -> dict[str, str]:
    return {"description_width": f"{pixels}px"}
