"""Words and numbers of a text, folded so that two ways of writing the same thing are equal.

Every pattern is linear in the length of the text: no nested or overlapping quantifiers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

__all__ = [
    "FRAME_WORDS",
    "MAX_CHARS",
    "STOPWORDS",
    "content",
    "fold",
    "is_number",
    "listed",
    "sentences",
    "similar",
    "squeeze",
    "tokens",
]


def listed(text: str, separator: str | None = None) -> tuple[str, ...]:
    """Return the items of a written list, so that a long table of words stays readable."""
    return tuple(text.split(separator))


#: Longer texts are read up to here; far above any answer, and a bound for hostile input.
MAX_CHARS = 200_000
#: The tokens of texts up to this length are remembered for a while.
MAX_KEPT_CHARS = 2_000

_QUOTES_AND_DASHES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′´`ʼ＇", "'"),
        **dict.fromkeys("“”„‟″«»〝〞＂", '"'),
        **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
        # Zero-width and bidirectional controls: invisible, so they must not part a word.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f", ""),
        **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""),
    }
)

#: Words that carry grammar, not facts.
STOPWORDS = frozenset(
    listed(
        "a an the of in on at to for from by with as and or but if then than that this these "
        "those it its is are was were be been being am do does did has have had having he "
        "she they we you i his her their our your my him them us me who whom whose which "
        "what when where why how there here s t re ll ve d m will would can could shall "
        "should may might must also so such into about over under after before during "
        "between both each other some any all"
    )
)

_MONTHS = {
    "jan": "january",
    "feb": "february",
    "mar": "march",
    "apr": "april",
    "jun": "june",
    "jul": "july",
    "aug": "august",
    "sep": "september",
    "sept": "september",
    "oct": "october",
    "nov": "november",
    "dec": "december",
}
_SMALL = {
    word: value
    for value, word in enumerate(
        listed(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen "
            "fourteen fifteen sixteen seventeen eighteen nineteen"
        )
    )
}
_TENS = {
    word: 10 * (value + 2)
    for value, word in enumerate(listed("twenty thirty forty fifty sixty seventy eighty ninety"))
}
_ORDINALS = {
    word: value + 1
    for value, word in enumerate(
        listed(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
            "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth "
            "twentieth"
        )
    )
}
_ROMAN = {
    word: value
    for value, word in enumerate(
        listed("- - ii iii iv - vi vii viii ix - xi xii xiii xiv xv xvi xvii xviii xix xx"), start=0
    )
    if word != "-"
}
_SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_UNITS = {
    "percent": "%",
    "pct": "%",
    "kilometer": "km",
    "kilometre": "km",
    "meter": "m",
    "metre": "m",
    "centimeter": "cm",
    "centimetre": "cm",
    "millimeter": "mm",
    "millimetre": "mm",
    "kilogram": "kg",
    "gram": "g",
    "mile": "mi",
    "foot": "ft",
    "feet": "ft",
    "inch": "in",
    "inche": "in",
    "pound": "lb",
    "lbs": "lb",
    "hour": "h",
    "hr": "h",
    "minute": "min",
    "second": "sec",
    "usd": "$",
    "dollar": "$",
    "euro": "€",
    "eur": "€",
}
#: Spellings that mean the same; both sides are rewritten, so the direction does not matter.
_SAME = {
    "usa": "us",
    "uk": "britain",
    "st": "saint",
    "mt": "mount",
    "dr": "doctor",
    "mr": "mister",
    "vs": "versus",
    "&": "and",
}

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|[%$€£&]")
_DOTTED = re.compile(r"\b(?:[a-z]\.){2,12}")
_POSSESSIVE = re.compile(r"'s\b|(?<=\bo)'(?=[a-z])")
_SENTENCE_END = re.compile(r"[.!?。！？]+[\"')\]]*\s+|\n+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:s)?")


def fold(text: str) -> str:
    r"""Return `text` NFKC-normalised, case-folded, quotes and dashes made plain.

    Examples
    --------
    >>> fold("“Don’t” – STRASSE")
    '"don\'t" - strasse'
    """
    return unicodedata.normalize("NFKC", text[:MAX_CHARS]).translate(_QUOTES_AND_DASHES).casefold()


def squeeze(text: str) -> str:
    """Return `text` with every run of white space made one space, and none at the ends."""
    return " ".join(text.split())


def is_number(token: str) -> bool:
    """Tell whether a token of :func:`tokens` is a number, a year or a decade (``1980s``)."""
    return _NUMBER.fullmatch(token) is not None


def tokens(text: str) -> list[str]:
    """Return the words, numbers and unit signs of `text` in one spelling each.

    Diacritics go, plurals lose their ending, number words and ordinals become digits, thousands
    lose their commas, months and units get one name.

    Examples
    --------
    >>> tokens("Twenty-one cafés in the U.S., 1,500 km away (2nd of Sept.)")
    ['21', 'cafe', 'in', 'the', 'us', '1500', 'km', 'away', '2', 'of', 'september']
    """
    return list(_kept(text) if len(text) <= MAX_KEPT_CHARS else _tokens(text))


def _tokens(text: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFD", fold(text))
    plain = "".join(c for c in folded if not unicodedata.combining(c))
    plain = _DOTTED.sub(lambda found: found[0].replace(".", "") + " ", plain)
    plain = _POSSESSIVE.sub("", plain)
    return tuple(_numbers([(found[0], found.end()) for found in _TOKEN.finditer(plain)]))


#: The same question, answer and chunks are looked at by several checks.
_kept = lru_cache(maxsize=4_096)(_tokens)


def _numbers(raw: list[tuple[str, int]]) -> list[str]:
    """Join number words and scales into one number; give all other words their one spelling."""
    out: list[str] = []
    position = 0
    while position < len(raw):
        token, end = raw[position]
        position += 1
        if token[0].isdigit():
            value = _digits(token)
            following = raw[position] if position < len(raw) else ("", -1)
            if following[1] == end + len(following[0]):  # glued: 5th, 1980s, 10km
                if following[0] in ("st", "nd", "rd", "th"):
                    position += 1
                elif following[0] == "s":
                    value += "s"
                    position += 1
            if position < len(raw) and raw[position][0] in _SCALES:
                scaled = _scaled(value, raw[position][0])
                if scaled is not None:
                    value = scaled
                    position += 1
            out.append(value)
        elif token in _TENS or token in _SMALL:
            number, position = _worded(raw, position - 1)
            out.append(str(number))
        elif token in _ORDINALS:
            out.append(str(_ORDINALS[token]))
        elif token in _ROMAN:
            out.append(str(_ROMAN[token]))
        else:
            out.append(_word(token))
    return out


def _digits(token: str) -> str:
    """Return a written number in one form: ``1,500`` is ``1500``, ``2.50`` is ``2.5``."""
    if ":" in token:
        return token
    whole, dot, decimals = token.replace(",", "").partition(".")
    if "." in decimals:
        return token
    whole = whole.lstrip("0") or "0"
    decimals = decimals.rstrip("0")
    return f"{whole}.{decimals}" if dot and decimals else whole


def _scaled(value: str, scale: str) -> str | None:
    if len(value) > 18 or not _NUMBER.fullmatch(value) or value.endswith("s"):
        return None
    product = round(float(value) * _SCALES[scale], 6)
    return str(int(product)) if product == int(product) else str(product)


def _worded(raw: list[tuple[str, int]], position: int) -> tuple[int, int]:
    """Read number words from `position`: the value, and where the next token is."""
    total = current = 0
    last = 10**15
    while position < len(raw):
        token = raw[position][0]
        if token in _TENS and last >= 100:
            current += _TENS[token]
            last = 10
        elif token in _SMALL and (last >= 100 or (last == 10 and _SMALL[token] in range(1, 10))):
            current += _SMALL[token]
            last = 1
        elif last == 10 and token in _ORDINALS and _ORDINALS[token] < 10:  # twenty-first
            return total + current + _ORDINALS[token], position + 1
        elif token == "hundred" and 0 < current < 100:  # noqa: S105 - a word
            current *= 100
            last = 100
        elif token in _SCALES and token != "hundred" and current:  # noqa: S105
            total += current * _SCALES[token]
            current = 0
            last = 1_000
        else:
            break
        position += 1
    return total + current, position


@lru_cache(maxsize=65_536)
def _word(token: str) -> str:
    if token in STOPWORDS:
        return token
    token = _MONTHS.get(token, token)
    token = _UNITS.get(token, token)
    if token.endswith("ies") and len(token) > 4:
        token = token[:-3] + "y"
    elif len(token) > 3 and token[-1] == "s" and token[-2] not in "sui":
        if token.endswith(("ches", "shes", "xes", "sses", "zes", "oes")):
            token = token[:-2]
        else:
            token = token[:-1]
    token = _UNITS.get(token, token)
    return _SAME.get(token, token)


#: Words with which an answer speaks of its sources and joins its sentences; they are no facts.
FRAME_WORDS = frozenset(
    listed(
        "according additionally address also although among answer around article based "
        "because besides certain chunk context currently data describe described despite "
        "detail document due especially every example excerpt finally following found "
        "further furthermore generally give given happy help hence highlight highlighted "
        "however id include included includes including information instead known like "
        "listed located main mainly make making mention mentioned mentioning moreover more "
        "multiple namely note noted noting offer offering often only other overall part "
        "particularly passage per please potentially present primarily provide provided "
        "providing question rather refer regarding related report reported see seen several "
        "show shown significant since source specific specifically specified state stated "
        "stating still suggest summary sure text therefore through thus together total type "
        "typically unique use used using usually variety various very well while within "
        "without word yeah yea yes"
    )
)


def content(words: Iterable[str]) -> list[str]:
    """Return the tokens that carry facts, in order."""
    return [word for word in words if word not in STOPWORDS]


@lru_cache(maxsize=65_536)
def similar(a: str, b: str) -> bool:
    """Tell whether two words are one but for a typing error or an ending.

    Numbers are never similar: one digit changes the fact.

    Examples
    --------
    >>> similar("roentgen", "rontgen"), similar("1971", "1972"), similar("paris", "pairs")
    (True, False, True)
    """
    if a == b:
        return True
    if (
        not 5 <= len(a) <= 40
        or not 5 <= len(b) <= 40
        or a[0] != b[0]
        or a[0].isdigit()
        or abs(len(a) - len(b)) > 3
    ):
        return False
    shorter, longer = sorted((a, b), key=len)
    if longer.startswith(shorter[: max(5, len(shorter) - 2)]):
        return True
    return _distance(a, b) <= (1 if len(shorter) < 8 else 2)


def _distance(a: str, b: str) -> int:
    """Return the edit distance, a swap of neighbours counted once (Damerau, restricted)."""
    before: list[int] = []
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        current = [i]
        for j, y in enumerate(b, start=1):
            best = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, before[j - 2] + 1)
            current.append(best)
        before, previous = previous, current
    return previous[-1]


def sentences(text: str) -> list[str]:
    """Return the sentences of `text`: cut after ``.``, ``!``, ``?`` and at line ends.

    Examples
    --------
    >>> sentences("It is red. It is 3.5 m long!")
    ['It is red.', 'It is 3.5 m long!']
    """
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text[:MAX_CHARS]):
        piece = text[start : end.end()].strip()
        if piece:
            found.append(piece)
        start = end.end()
    rest = text[start:MAX_CHARS].strip()
    return [*found, rest] if rest else found
