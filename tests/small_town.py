"""A fictional town of a few hundred households, as CSV files with a codebook."""

import random
from pathlib import Path

CENSUS = """name = "town"
largest_household = 9
[geography]
spine = ["state", "county", "block"]
[record.household]
files = ["household.csv"]
id = "household_id"
size = "size"
[record.household.variables]
size = {type = "integer", range = "1..9"}
tenure = {levels = ["owned", "rented"]}
[record.person]
files = ["person.csv"]
id = "person_id"
household = "household_id"
of = "household"
[record.person.variables]
sex = {levels = ["f", "m"]}
"""


def write_town(folder: Path, households: int = 300) -> None:
    """Write the records and census.toml."""
    rng = random.Random(7)
    homes, people = ["household_id,state,county,block,size,tenure"], ["person_id,household_id,sex"]
    for home in range(households):
        county = rng.randrange(3)
        size = 1 + min(rng.randrange(5), rng.randrange(5))
        tenure = "owned" if rng.random() < 0.3 + 0.2 * county else "rented"
        homes.append(f"{home},s,c{county},c{county}b{rng.randrange(9)},{size},{tenure}")
        people += [f"{home}{n},{home},{'fm'[rng.random() < 0.5]}" for n in range(size)]
    folder.mkdir(exist_ok=True)
    (folder / "household.csv").write_text("\n".join(homes) + "\n")
    (folder / "person.csv").write_text("\n".join(people) + "\n")
    (folder / "census.toml").write_text(CENSUS)
