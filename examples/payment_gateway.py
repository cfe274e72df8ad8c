"""The help pages of an invented payment gateway: what the small examples search.

Each passage is one chunk; its id is what the datasets' ``relevant_chunk_ids`` name.
"""

from __future__ import annotations

PASSAGES: dict[str, str] = {
    "refunds-time": (
        "A refund to a card takes 5 to 7 business days to appear on the customer's statement. "
        "Refunds to a bank account take up to 10 business days."
    ),
    "refunds-fees": (
        "The processing fee of the original payment is not returned when a payment is refunded. "
        "Partial refunds are free of charge."
    ),
    "payouts-schedule": (
        "Payouts are sent every Monday and Thursday. "
        "The first payout of a new account is held for 14 days."
    ),
    "payouts-hold": (
        "A payout is held when more than 1% of the payments of the last 30 days were disputed. "
        "The hold ends when the rate falls below 1%."
    ),
    "disputes-fee": (
        "A dispute costs 15 euros. "
        "The fee is returned when the dispute is decided for the merchant."
    ),
    "disputes-evidence": (
        "Evidence against a dispute must be uploaded within 9 days. "
        "A signed delivery receipt and the customer's messages are the strongest evidence."
    ),
    "webhooks-retry": (
        "A webhook that is not answered with status 200 is sent again for 3 days, "
        "each time after twice the wait. After that the endpoint is disabled."
    ),
    "webhooks-signature": (
        "Every webhook carries a signature made with the endpoint's secret. "
        "A new secret is valid at once, and the old one for another 24 hours."
    ),
    "keys-live": (
        "Live keys begin with live_ and work only from servers on the allow list. "
        "Test keys begin with test_ and never move money."
    ),
    "cards-declined": (
        "A card is declined with code 51 when the account lacks funds and with code 54 when the "
        "card has expired. Code 51 may be tried again after a day, code 54 may not."
    ),
    "currencies": (
        "Payments are accepted in 27 currencies. "
        "A payment in another currency than the account's is converted at the day's rate plus 2%."
    ),
    "limits": (
        "A single payment may be of 10,000 euros at most. "
        "Verified businesses can ask support for a higher limit."
    ),
}
