"""How numbers read: the only place that rounds what is shown.

Every function takes a number, or None or NaN for missing, and returns a string. Data are never
rounded; published JSON rounds for itself.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

__all__ = [
    "MINUS",
    "NBSP",
    "ascii_signs",
    "change",
    "count",
    "interval",
    "is_missing",
    "measure",
    "milliseconds",
    "milliseconds_change",
    "of",
    "percent",
    "plural",
    "ratio",
    "size",
]

NBSP = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
#: What stands for a measure that has no value; never a dash, a blank or a zero.
MISSING = "not measured"
#: Measures lie in [0, 1] and are known to two decimals at best with a few hundred queries.
MEASURE_DECIMALS = 2
#: Below this many milliseconds one decimal is kept: 0.4 ms is not 0 ms.
SMALL_MS = 10.0

_ASCII = str.maketrans(
    {
        MINUS: "-",
        NBSP: " ",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{RIGHTWARDS ARROW}": "->",
        "\N{LEFTWARDS ARROW}": "<-",
        "\N{HORIZONTAL ELLIPSIS}": "...",
    }
)

Number = SupportsFloat | None


def is_missing(value: object) -> bool:
    """Tell whether `value` is None, NaN or NA.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing(None), is_missing(0)
    (True, True, False)
    """
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA refuses to be true or false
        return True


def ascii_signs(text: str) -> str:
    """Return `text` with the typographic signs we write turned into ASCII, for terminals.

    Examples
    --------
    >>> ascii_signs(change(-0.25))
    '-0.25'
    """
    return text.translate(_ASCII)


def _known(value: Number) -> float | None:
    return None if is_missing(value) else float(value)  # type: ignore[arg-type]


def _fixed(value: float, decimals: int, *, sign: bool = False) -> str:
    """Write `value` with thousands commas, a true minus and never a negative zero."""
    text = f"{value:+,.{decimals}f}" if sign else f"{value:,.{decimals}f}"
    if not text.strip("+-0.,"):
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def measure(value: Number, missing: str = MISSING) -> str:
    """Write a measure in [0, 1] with two decimals.

    Examples
    --------
    >>> measure(0.7849), measure(1), measure(-0.001), measure(None)
    ('0.78', '1.00', '0.00', 'not measured')
    """
    known = _known(value)
    return missing if known is None else _fixed(known, MEASURE_DECIMALS)


def change(value: Number, missing: str = MISSING) -> str:
    """Write a difference of measures with its sign.

    Examples
    --------
    >>> change(0.138), change(-0.051), change(0.0), change(float("nan"))
    ('+0.14', '−0.05', '0.00', 'not measured')
    """
    known = _known(value)
    return missing if known is None else _fixed(known, MEASURE_DECIMALS, sign=True)


def milliseconds(value: Number, missing: str = MISSING) -> str:
    """Write milliseconds, without decimals from ten on.

    Examples
    --------
    >>> [ascii_signs(milliseconds(value)) for value in (1120.4, 0.42, None)]
    ['1,120 ms', '0.4 ms', 'not measured']
    """
    known = _known(value)
    return missing if known is None else f"{_fixed(known, _ms_decimals(known))}{NBSP}ms"


def milliseconds_change(value: Number, missing: str = MISSING) -> str:
    """Write a difference in milliseconds with its sign.

    Examples
    --------
    >>> [ascii_signs(milliseconds_change(value)) for value in (36.0, -0.25)]
    ['+36 ms', '-0.2 ms']
    """
    known = _known(value)
    if known is None:
        return missing
    return f"{_fixed(known, _ms_decimals(known), sign=True)}{NBSP}ms"


def _ms_decimals(value: float) -> int:
    return 1 if abs(value) < SMALL_MS and not value.is_integer() else 0


def ratio(value: Number, missing: str = MISSING) -> str:
    """Write a ratio.

    Examples
    --------
    >>> ratio(1.1502)
    '×1.15'
    """
    known = _known(value)
    if known is None:
        return missing
    return "\N{MULTIPLICATION SIGN}" + _fixed(known, MEASURE_DECIMALS)


def interval(low: Number, high: Number, missing: str = MISSING) -> str:
    """Write an interval of differences.

    Examples
    --------
    >>> interval(0.039, 0.237), interval(-0.026, 0.304)
    ('+0.04 to +0.24', '−0.03 to +0.30')
    """
    if is_missing(low) or is_missing(high):
        return missing
    return f"{change(low)} to {change(high)}"


def percent(share: Number, missing: str = MISSING) -> str:
    """Write a share as a percentage, and never round a part up to all or down to none.

    Examples
    --------
    >>> [ascii_signs(percent(share)) for share in (0.5, 0.9999, 0.0004, 1)]
    ['50 %', '>99 %', '<1 %', '100 %']
    """
    value = _known(share)
    if value is None:
        return missing
    if 0.0 < value < 0.01:
        return f"<1{NBSP}%"
    if 0.99 < value < 1.0:
        return f">99{NBSP}%"
    return f"{_fixed(100 * value, 0)}{NBSP}%"


def count(value: Number, missing: str = MISSING) -> str:
    """Write a count with thousands commas.

    Examples
    --------
    >>> count(12345), count(None)
    ('12,345', 'not measured')
    """
    known = _known(value)
    return missing if known is None else _fixed(known, 0)


def of(part: Number, whole: Number) -> str:
    """Write a count before its total.

    Examples
    --------
    >>> of(11, 15)
    '11 of 15'
    """
    return f"{count(part)} of {count(whole)}"


def plural(number: int, singular: str, many: str | None = None) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> plural(1, "query", "queries"), plural(3, "query", "queries"), plural(0, "chunk")
    ('1 query', '3 queries', '0 chunks')
    """
    return f"{count(number)} {singular if number == 1 else many or singular + 's'}"


def size(n_bytes: int) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> [ascii_signs(size(n_bytes)) for n_bytes in (512, 25_300, 10_400_000)]
    ['512 B', '25 kB', '10.4 MB']
    """
    if n_bytes < 1000:
        return f"{n_bytes}{NBSP}B"
    exponent = min(int(math.log10(n_bytes) // 3), 3)
    value = n_bytes / 1000**exponent
    unit = ("B", "kB", "MB", "GB")[exponent]
    return f"{value:,.{1 if exponent > 1 else 0}f}{NBSP}{unit}"
