"""Payment cards: groups of digits, an issuer's range and length, the Luhn sum."""

from __future__ import annotations

import re

from interlock.processors.presets.rule import GAP, PresetRule

# Looked at after the first digit, which is found faster: not inside a longer number, not the decimals of one, not the
# tail of a UUID.
_CARD_START = r"[2-9](?<!\w.)(?<![0-9][.,].)(?<![0-9A-Fa-f]{4}-.)"
_CARD_END = r"(?!\w)"


def _groups(*sizes: int) -> str:
    return GAP.join(f"[0-9]{{{size}}}" for size in sizes)


_CARDS = (
    _CARD_START
    + f"(?:[0-9]{{12,18}}|{_groups(3, 4, 4, 4)}|{_groups(3, 6, 5)}|{_groups(3, 6, 4)}|{_groups(3, 3, 3, 3)})"
    + _CARD_END,
    # with its own pattern, so that a security code after a number of 16 digits hides nothing
    _CARD_START + _groups(3, 4, 4, 4, 3) + _CARD_END,
    # a number after other groups of digits, which a candidate that begins with them would hide
    rf"[0-9](?<!\w.)(?<![0-9]{GAP}.)[0-9]{{0,3}}(?:{GAP}[0-9]{{4}}){{4,11}}" + _CARD_END,
    # unusual groups: whatever they are, no single digits
    _CARD_START + rf"(?:{GAP}?[0-9]){{12,18}}" + _CARD_END,
)
# who issues such numbers, and how long they are
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|3(?:0[0-5]|[689]\d)\d{11}(?:\d{2,5})?"  # Diners
    r"|35\d{14,17}"  # JCB
    r"|6\d{12,18}|5[06-8]\d{11,17}"  # Discover, UnionPay, RuPay, Maestro
    r"|220[0-5]\d{12,15}|81\d{14,17}|9792\d{12}"  # Mir, RuPay, Troy
)
_USUAL = re.compile(
    rf"[0-9]+|{_groups(4, 4, 4, 4)}|{_groups(4, 4, 4, 4, 3)}|{_groups(4, 6, 4)}|{_groups(4, 6, 5)}"
)


def is_card(text: str) -> bool:
    """A payment card's number: an issuer's range and length, the Luhn sum, not one digit over and over."""
    groups = re.findall("[0-9]+", text)
    if len(groups) > 4 and all(len(group) == 4 for group in groups[1:]):
        return _hides_a_number(groups)
    return (_USUAL.fullmatch(text) is not None or min(map(len, groups)) > 1) and _is_card_number(
        "".join(groups)
    )


def _hides_a_number(groups: list[str]) -> bool:
    """Whether the pattern of four groups of four, which goes on behind a candidate it rejects, misses a number."""
    numbers = {at for at in range(len(groups) - 3) if _is_card_number("".join(groups[at : at + 4]))}
    at = 0
    while at < len(groups) - 3:
        numbers.discard(at)
        at += 4 if len(groups[at]) == 4 and groups[at] >= "2" else 1
    return bool(numbers)


def _is_card_number(digits: str) -> bool:
    if _ISSUERS.fullmatch(digits) is None or len(set(digits)) == 1:
        return False
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(each - 9 * (each > 9) for each in doubled)) % 10 == 0


CARD = PresetRule(name="card", patterns=_CARDS, accept=is_card)
