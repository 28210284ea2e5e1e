import pytest

from routing.numerals import DIGITS, count_noun, parse_decimal, per_second


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * DIGITS, 10**DIGITS - 1)])
def test_digits_are_a_number(text, number):
    assert parse_decimal(text) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "0x1", "1.0", "٣", "²", "9" * (DIGITS + 1), "9" * 5000])
def test_other_texts_are_no_decimal_numbers(text):
    assert parse_decimal(text) is None


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("link", "links"),
        ("switch", "switches"),
        ("process", "processes"),
        ("entry", "entries"),
        ("way", "ways"),
        ("CA", "CAs"),
        ("VL", "VLs"),
        ("end port", "end ports"),
    ],
)
def test_one_and_many(one, many):
    assert [count_noun(n, one) for n in (0, 1, 2)] == [f"0 {many}", f"1 {one}", f"2 {many}"]


def test_a_plural_that_is_given():
    assert count_noun(1, "CA or router", "CAs and routers") == "1 CA or router"
    assert count_noun(2, "CA or router", "CAs and routers") == "2 CAs and routers"


@pytest.mark.parametrize(
    ("count", "seconds", "expected"),
    [(3, 6.4, "0.5"), (0, 1.0, "0.0"), (99, 10.0, "9.9"), (756, 1.0, "756"), (2, 0.0, "2000000000")],
)
def test_rates(count, seconds, expected):
    assert per_second(count, seconds) == f"{expected} a second"
