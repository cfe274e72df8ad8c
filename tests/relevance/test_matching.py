from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdiag.matching import Passage, merged, n_characters, normalised

TEXT = "Refunds are paid back to the card within seven working days, fees excluded."


def found(passage: str, chunk: str):
    return Passage(passage).find(normalised(chunk), chunk)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S & P 500 | 100.00", "sp50010000"),
        ("Café — CAFÉ", "cafecafe"),
        ("ﬁnance Ⅷ ½", "financeviii12"),
        ("Straße", "strasse"),
        ("退款需要 7 天。", "退款需要7天"),
        ("snake_case™ ℃", "snakecase"),
        ("\ud800a", "a"),
        ("...", ""),
    ],
)
def test_letters_and_digits_are_kept(text, expected):
    assert normalised(text) == expected


@given(st.text())
def test_normalising_goes_character_by_character(text):
    assert normalised(text) == "".join(map(normalised, text))
    assert normalised(normalised(text)) == normalised(text)


@given(st.text())
def test_characters_are_all_but_white_space(text):
    assert n_characters(text) == sum(not each.isspace() for each in text)


@pytest.mark.parametrize(
    "chunk",
    [
        TEXT,
        f"Before. {TEXT} After.",
        "* REFUNDS are **paid back** to\n  the card | within seven working-days, fees excluded",
        "refundsarepaidbacktothecardwithinsevenworkingdaysfeesexcluded",
    ],
)
def test_a_passage_is_found_whole(chunk):
    part = found(TEXT, chunk)
    assert part.intervals == ((0, n_characters(TEXT)),)
    assert not part.cut
    assert not part.by_tokens
    assert part.size == len(Passage(TEXT))


@pytest.mark.parametrize(
    ("passage", "chunk", "held"),
    [
        ("8", "in 1984", False),
        ("8", "8 days", True),
        ("art", "a cartoon", False),
        ("Art", "modern art, mostly", True),
        ("7 天", "需要 7 天。", True),
        ("++", "C++ is not C", True),
        ("++", "C is C", False),
        ("Paris", "", False),
    ],
)
def test_a_short_passage_is_found_as_words_only(passage, chunk, held):
    assert (found(passage, chunk) is not None) is held


def test_what_is_not_there_is_not_found():
    assert found(TEXT, "Nothing of the kind is said in this chunk, on shipping.") is None
    # Three words in common are no evidence.
    assert found(TEXT, "Shipping takes place within seven working days after the order.") is None


@pytest.mark.parametrize("at", range(14, 60))
def test_a_cut_is_found_on_both_sides(at):
    before, after = found(TEXT, f"Before. {TEXT[:at]}"), found(TEXT, f"{TEXT[at:]} After.")
    assert before.cut
    assert before.intervals == ((0, before.size),)
    if after is not None:
        assert after.cut
        assert merged([*before.intervals, *after.intervals]) == [(0, n_characters(TEXT))]


def test_a_chunk_inside_the_passage_is_found():
    part = found(TEXT, TEXT[12:40])
    assert part.cut
    start = n_characters(TEXT[:12])
    assert part.intervals == ((start, start + n_characters(TEXT[12:40])),)


def test_of_a_beginning_that_comes_twice_the_longest_piece_counts():
    passage = "one two three four five and one two three four six"
    part = found(passage, "so much for one two three four five and one two three four")
    assert part.intervals == ((0, n_characters(passage) - len("six")),)
    part = found(passage, "one two three four six and that is that")
    assert part.intervals[-1] == (
        n_characters("one two three four five and"),
        len(Passage(passage)),
    )


def test_token_overlap_counts_from_half_of_the_passage_on():
    passage = "alpha bravo charlie delta echo foxtrot golf hotel india juliett"
    words = passage.split()
    rest = "and then a number of other words that are not in it at all, so that it is longer"
    half = f"xx {' '.join(words[:6])} {rest}"
    part = found(passage, half)
    assert part.by_tokens
    assert not part.cut
    assert part.intervals == ((0, len("".join(words[:6]))),)
    assert found(passage, f"xx {' '.join(words[:4])} {rest}") is None


def test_two_changed_words_leave_the_rest():
    changed = TEXT.replace("paid", "given").replace("working", "business")
    part = found(TEXT, changed)
    assert part.by_tokens
    assert 0.5 < part.size / len(Passage(TEXT)) < 0.8


@given(st.text(alphabet="abc dé.|", min_size=1, max_size=40), st.data())
def test_a_chunk_that_contains_the_passage_has_all_of_it(text, data):
    before = data.draw(st.text(alphabet="xyz .", max_size=10))
    if not text.strip():
        return
    part = Passage(text).find(normalised(f"{before} {text} zz"), f"{before} {text} zz")
    assert part is not None
    assert part.size == n_characters(text)


def test_remnants_complete_a_passage():
    passage = Passage(TEXT)
    assert passage.completes(normalised("ded. And so on"), passage.size - 4, passage.size)
    assert not passage.completes(normalised("And so on"), passage.size - 4, passage.size)
    assert passage.completes(normalised("so much. Refu"), 0, 4)
    assert not passage.completes(normalised("Refu and more"), 0, 4)
    assert not passage.completes(normalised(TEXT), 0, passage.size)
    assert not passage.completes(normalised(TEXT), 3, 8)


def test_any_cut_of_a_text_gives_all_of_the_passage_back():
    rng = random.Random(3)
    words = ["refund", "card", "fee", "seven", "days", "paid", "within", "working", "bank", "week"]
    for _ in range(200):
        text = " ".join(rng.choices(words, k=80))
        start = rng.randrange(200)
        passage = Passage(text[start : start + 120].strip())
        size = rng.randint(40, 150)
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        parts = [passage.find(normalised(chunk), chunk) for chunk in chunks]
        held = merged([each for part in parts if part for each in part.intervals])
        assert sum(end - start for start, end in held) >= len(passage) - 2 * 12
