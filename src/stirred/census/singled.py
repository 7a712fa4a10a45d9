"""Say when the values of a column single out records: the one rule of describing a file and of the guards."""

MAX_FEW_VALUES = 20  # a column with no more different values is a category, also where one of them is rare
MAX_SINGLE_SHARE = 0.01  # of the records with a value: those whose value no other record has
MAX_SINGLE_RECORDS = 20
MIN_RECORDS_JUDGED = 50  # in a smaller file nearly every column has values that occur once


def singles_out(*, filled: int, values: int, unique: int) -> bool:
    """Return whether too many of the records with a value have one of their own.

    >>> singles_out(filled=400, values=90, unique=5), singles_out(filled=400, values=12, unique=5)
    (True, False)
    """
    if filled < MIN_RECORDS_JUDGED or values <= MAX_FEW_VALUES:
        return False
    return unique > MAX_SINGLE_SHARE * filled or unique > MAX_SINGLE_RECORDS
