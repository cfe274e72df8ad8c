"""How things look. This room decides nothing: it shows what the rooms above it found.

``numbers`` rounds, ``clean`` makes hostile text readable, ``views`` says what is shown of each
object as plain ``blocks``, ``text``, ``markdown`` and ``html`` write those down, ``page`` makes the
static report, ``plots`` draws, ``explorer`` mirrors a plain state in widgets.
"""

from __future__ import annotations

from typing import Any

__all__ = ["bundle"]


def bundle(obj: Any) -> dict[str, str]:
    """Return what a notebook is given to show `obj`: a text report and an HTML fragment.

    A display never breaks the cell it stands in: if HTML cannot be made, the text stands alone, and
    if that cannot be made either, the name of the type does.

    Examples
    --------
    >>> from ragdiag.schema import JudgeResult
    >>> sorted(bundle(JudgeResult(grounded=True)))
    ['text/html', 'text/plain']
    """
    from ragdiag.display import html, text, views

    shown: dict[str, str] = {}
    try:
        view = views.view(obj)
        shown["text/plain"] = text.render_view(view)
        shown["text/html"] = html.render(obj, view)
    except Exception as error:  # a repr never raises
        reason = f"{type(error).__name__}: {error}"
        shown.setdefault("text/plain", f"<{type(obj).__name__}, not shown because of {reason}>")
    return shown
