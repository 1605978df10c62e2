"""International bank account numbers: a country's length, and the remainder by 97."""

from __future__ import annotations

from interlock.processors.presets.rule import GAP, PresetRule

_IBAN_LENGTHS = {
    15: "NO",
    16: "BE",
    18: "DK FK FI FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ DZ ES MD PK RO SA SE SK TN VG YE",
    25: "AO CV GW LY MZ PT ST",
    26: "IR IS TR",
    27: "BF BI BJ CF CG CI CM DJ FR GA GF GP GQ GR IT KM MC MG ML MQ MR NC NE PF PM RE SM SN TD TF TG WF YT",
    28: "AL AZ BY CY DO GT HN HU LB MA NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU",
    31: "MT SC",
    32: "LC",
    33: "RU",
}


def _any_case(countries: str) -> str:
    return "|".join(f"[{a}{a.lower()}][{b}{b.lower()}]" for a, b in countries.split())


# Groups of four: where the last one is full, the country tells how many there are (a word may follow); where it is
# not, it is the end.
_IBAN = (
    r"(?<![A-Za-z0-9])[A-Za-z]{{2}}[0-9]{{2}}(?:{run}|{full}|(?:{four}){{2,7}}{last})(?![A-Za-z0-9])".format(
        run="[A-Za-z0-9]{11,29}",
        full="|".join(
            f"(?<=(?:{_any_case(countries)})..)" + f"{GAP}[A-Za-z0-9]{{4}}" * (length // 4 - 1)
            for length, countries in _IBAN_LENGTHS.items()
            if length % 4 == 0
        ),
        four=f"{GAP}[A-Za-z0-9]{{4}}",
        last=f"{GAP}[A-Za-z0-9]{{1,3}}",
    )
)
_IBAN_LENGTH = {
    country: length for length, countries in _IBAN_LENGTHS.items() for country in countries.split()
}


def is_iban(text: str) -> bool:
    """As long as the country has them, and the remainder of the number by 97 is 1."""
    plain = "".join(char for char in text if char.isalnum()).upper()
    return (
        len(plain) == _IBAN_LENGTH.get(plain[:2])
        and int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1
    )


IBAN = PresetRule(name="iban", patterns=(_IBAN,), accept=is_iban)
