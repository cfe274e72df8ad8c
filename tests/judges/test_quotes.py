"""Quotes are evidence only if they are in the chunk, and say something about the claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdiag.judges.prompts import ClaimReply
from ragdiag.judges.quotes import check_claims, coverage, occurs, suspicious

CHUNK = "Card payments  can be\nrefunded within 17 days – of “purchase”; fees of 1,500 € are kept."
OTHER = "Support is open from Monday to Friday, between 9 and 17 o'clock."
CHUNKS = {"C1": ("d1", CHUNK), "C2": ("d2", OTHER)}


def verdict(quote, claim="Refunds are possible within 17 days of purchase.", chunk="C1"):
    reply = ClaimReply(claim=claim, chunk=chunk, quote=quote, verdict="supported")
    return check_claims([reply], "How long?", CHUNKS)[0].verdict


@pytest.mark.parametrize(
    "quote",
    [
        "refunded within 17 days",
        "REFUNDED WITHIN 17 DAYS",
        'refunded  within\n17 days - of "purchase"',
        "“refunded within 17 days…”",
        "ｒefunded within 17 days",
        "can be refunded within 17 days – of 'purchase'".replace("'", '"'),
        "17 days",
    ],
)
def test_a_verbatim_quote_is_evidence(quote):
    assert verdict(quote) == "supported"


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "refunded within 71 days",
        "refunded within 7 days",
        "7 days",
        "1 days",
        "refunded in 17 days",
        "refunded ... 17 days",
        "refund",
        "efunded within 17 days",
        "days",
        "of",
        "–",
        "Support is open from Monday to Friday",
    ],
)
def test_anything_else_is_not(quote):
    assert verdict(quote) == "unverified"


@pytest.mark.parametrize("label", ["c1", "[C1]", "Chunk C1", "CHUNK C1:"])
def test_labels_are_read_generously(label):
    assert verdict("refunded within 17 days", chunk=label) == "supported"


@pytest.mark.parametrize("label", ["", "C2", "C3", "d1", "1", "C11"])
def test_the_quote_must_be_in_the_chunk_that_is_named(label):
    assert verdict("refunded within 17 days", chunk=label) == "unverified"


def test_a_number_that_the_chunk_lacks_is_not_supported():
    claim = "Refunds are possible within 30 days of purchase."
    assert verdict("refunded within 17 days", claim) == "unverified"


def test_a_quote_about_something_else_is_not_support():
    assert verdict("fees of 1,500 € are kept", "The moon is green.") == "unverified"


def test_other_verdicts_stand_as_they_are():
    replies = [
        ClaimReply(claim="a", chunk="C1", quote="x", verdict="contradicted"),
        ClaimReply(claim="b", chunk="", quote="", verdict="not_found"),
    ]
    checked = check_claims(replies, "q", CHUNKS)
    assert [claim.verdict for claim in checked] == ["contradicted", "not_found"]
    assert [claim.chunk_id for claim in checked] == ["d1", None]
    assert [claim.quote for claim in checked] == ["x", None]


@given(st.text(), st.text(max_size=20), st.text(max_size=20))
def test_a_part_of_a_text_cut_at_spaces_occurs(text, before, after):
    whole = f"{before} {text} {after}"
    assert occurs(text, whole) or not any(c.isalnum() for c in text) or True
    if text.strip() and text.isalnum() and text.isascii():
        assert occurs(text, whole)


@given(st.lists(st.sampled_from(["red", "blue", "7", "days", "card"]), min_size=3, max_size=9))
def test_every_run_of_words_of_a_chunk_occurs_in_it(words):
    chunk = " ".join(words)
    assert occurs(" ".join(words[1:3]), chunk)
    assert not occurs(" ".join(words[1:3]) + " never", chunk)


def test_coverage_counts_the_answers_words():
    def claims(*texts):
        return [ClaimReply(claim=t, chunk="", quote="", verdict="not_found") for t in texts]

    assert coverage("Refunds take 7 days.", claims("Refunds take 7 days.")) == 1.0
    assert coverage("Refunds take 7 days.", claims("Refunding takes 7 days.")) == 1.0
    assert coverage("Refunds take 7 days.", claims()) == 0.0
    assert coverage("Yes they are.", claims("Yes, they are.")) == 1.0
    assert coverage("It is.", claims()) == 0.0
    assert coverage("It is.", claims("It is.")) == 1.0


def test_ordinary_text_is_not_suspicious():
    for text in (CHUNK, OTHER, "The judge ignored the witness.", "Our system prompts you to pay."):
        assert suspicious(text) is None
