"""Writes the files of this example: a fictional country with NUTS regions, municipalities (LAU) and a 1-km grid.

Nothing here is real: the country code XX is assigned to no country, and every record comes from the dice below.
"""

import csv
import random
from pathlib import Path

FOLDER = Path(__file__).parent
# municipality → (NUTS 3 region, south-west corner in km, width and height in km, households)
LAUS = {
    "XX1110001": ("XX111", 4340, 2700, 4, 3, 60),
    "XX1110002": ("XX111", 4344, 2700, 3, 3, 25),
    "XX1120001": ("XX112", 4340, 2703, 5, 4, 35),
    "XX1210001": ("XX121", 4347, 2700, 6, 5, 90),
    "XX1210002": ("XX121", 4345, 2705, 4, 3, 12),
    "XX2110001": ("XX211", 4353, 2700, 3, 6, 40),
}
NAMES = {
    "XX": "Fictland",
    "XX1": "The North",
    "XX2": "The South",
    "XX11": "Upper Vale",
    "XX12": "Lower Vale",
    "XX21": "Coast",
    "XX111": "Westmark",
    "XX112": "Highmark",
    "XX121": "Riverside",
    "XX211": "Harbour",
    "XX1110001": "Alder",
    "XX1110002": "Birch",
    "XX1120001": "Cedar",
    "XX1210001": "Dogwood",
    "XX1210002": "Elm",
    "XX2110001": "Fir",
}


def main() -> None:
    """Write areas.csv, households.csv and persons.csv."""
    dice = random.Random(1)
    with (FOLDER / "areas.csv").open("w", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(["code", "parent", "level", "name"])
        for code, name in NAMES.items():
            if code in LAUS:
                rows.writerow([code, LAUS[code][0], "lau", name])
            else:
                rows.writerow([code, code[:-1] if len(code) > 2 else "", f"nuts{len(code) - 2}", name])
    with (
        (FOLDER / "households.csv").open("w", newline="") as homes_file,
        (FOLDER / "persons.csv").open("w", newline="") as persons_file,
    ):
        homes, persons = (csv.writer(file, lineterminator="\n") for file in (homes_file, persons_file))
        homes.writerow(["household_id", "lau", "grid", "dwelling", "size", "tenure", "tenure_imputed"])
        persons.writerow(["household_id", "sex", "age", "citizenship"])
        number = 0
        for lau, (_, east, north, wide, high, count) in LAUS.items():
            for _ in range(count):
                number += 1
                # the border between two municipalities runs through cells, so a cell may hold homes of both
                e, n = east + int(dice.random() * (wide + 1)), north + int(dice.random() * (high + 1))
                grid = f"CRS3035RES1000mN{n}000E{e}000"
                vacant = dice.random() < 0.1
                size = 0 if vacant else min(1 + int(dice.random() ** 2 * 6), 6)
                tenure = (
                    "0" if vacant else "1" if dice.random() < 0.55 else "2" if dice.random() < 0.9 else "9"
                )
                imputed = int(not vacant and dice.random() < 0.05)
                homes.writerow([number, lau, grid, 2 if vacant else 1, size, tenure, imputed])
                for place in range(size):
                    age = 18 + int(dice.random() * 70) if place == 0 else int(dice.random() * 85)
                    citizenship = "XX" if dice.random() < 0.9 else "EU" if dice.random() < 0.6 else "OTH"
                    persons.writerow([number, 1 + int(dice.random() * 2), age, citizenship])


if __name__ == "__main__":
    main()
