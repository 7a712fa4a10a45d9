r"""Integer intervals that contain $e^{-x}$: no floating point, and every rounding widens the interval.

$[l, h]$ at ``bits`` means $l \le 2^{bits} v \le h$. Products round the low end down and the high end up, so a chain
of products keeps its value inside, whatever its length (proof.md, Section 5).
"""

from fractions import Fraction

from stirred.chance.stream import Uniform


def enclose_exp(x: Fraction, bits: int) -> tuple[int, int]:
    """The interval of $e^{-x}$ for x ≥ 0, a few units wide.

    >>> low, high = enclose_exp(Fraction(1), 20)
    >>> low, high  # 2**20 / e = 385749.6...
    (385749, 385750)
    """
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    work = bits + halvings + 16
    scaled = x.numerator << work
    divisor = x.denominator << halvings
    y_low = scaled // divisor  # y = x / 2^halvings < 1/2
    y_high = y_low + 1
    total_low = total_high = term_low = term_high = 1 << work
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y_low >> work) // n
        term_high = -((-(term_high * y_high)) >> work)
        term_high = -(-term_high // n)
        if n % 2:
            total_low, total_high = total_low - term_high, total_high - term_low
        else:
            total_low, total_high = total_low + term_low, total_high + term_high
    # alternating and decreasing: what is left out is at most the last term
    low, high = max(0, total_low - term_high), min(1 << work, total_high + term_high)
    for _ in range(halvings):
        low, high = low * low >> work, -((-(high * high)) >> work)
    extra = work - bits
    return low >> extra, -(-high >> extra)


def is_below_exp(uniform: Uniform, x: Fraction) -> bool:
    """Decide whether $U < e^{-x}$ with as many bits as needed: a coin of probability exactly $e^{-x}$."""
    while True:
        low, high = enclose_exp(x, uniform.bits + 32)
        if (uniform.value + 1) << 32 <= low:
            return True
        if uniform.value << 32 >= high:
            return False
        uniform.extend()
