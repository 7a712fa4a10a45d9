"""A census of a few households as text, for tests that write it to a folder."""

CENSUS = """name = "c"
[geography]
spine = ["state", "county"]
[record.household]
files = ["household.csv"]
id = "household_id"
[record.household.variables]
size = {type = "integer", range = "1..9"}
tenure = {levels = ["o", "r"]}
"""


def households(number: int) -> str:
    """The lines of household.csv.

    >>> households(1)
    'household_id,state,county,size,tenure\\n0,1,1,1,r\\n'
    """
    lines = (f"{i},1,{1 + i % 3},{1 + i % 2},{'or'[i % 5 == 0]}\n" for i in range(number))
    return "household_id,state,county,size,tenure\n" + "".join(lines)
