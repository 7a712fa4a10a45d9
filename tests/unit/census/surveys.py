"""Surveys that are like an Austrian household file and a Ghanaian survey, made without any record of them."""

import random

import polars as pl

REGIONS = ["Burgenland", "Kärnten", "Niederösterreich", "Salzburg", "Tirol", "Wien"]


def austria(households: int = 600) -> pl.DataFrame:
    dice = random.Random(1)
    return pl.DataFrame(
        {
            "hid": dice.sample(range(10_000, 99_999), households),
            "region": [dice.choice(REGIONS) for _ in range(households)],
            "size": [dice.randint(1, 6) for _ in range(households)],
            "urban": [dice.randint(1, 3) for _ in range(households)],
            "eqIncome": [round(dice.lognormvariate(6, 0.5)) + 0.25 for _ in range(households)],
            "weight": [dice.randint(400, 900) / 4 for _ in range(households)],
        }
    )


def ghana(areas: int = 60, each: int = 10) -> tuple[pl.DataFrame, pl.DataFrame]:
    dice = random.Random(2)
    district = [dice.randint(1, 20) for _ in range(areas)]
    region = {code: dice.randint(1, 5) for code in range(1, 21)}
    town = [dice.randint(1, 2) for _ in range(areas)]
    weight = [dice.randint(2000, 90_000) / 16 for _ in range(areas)]
    homes, persons = [], []
    for area in range(areas):
        for number in range(each):
            size = dice.randint(1, 6)
            code = f"{area:03}{number:02}"
            homes.append(
                {
                    "hhid": code,
                    "region": region[district[area]],
                    "district": district[area],
                    "ea": 7000 + area,
                    "loc": town[area],
                    "hsize": size,
                    "water": dice.randint(1, 8),
                    "clustwgt": weight[area],
                }
            )
            persons += [
                {"hhid": code, "pid": k + 1, "sex": dice.choice("mf"), "age": dice.randint(0, 90)}
                for k in range(size)
            ]
    return pl.DataFrame(homes), pl.DataFrame(persons)
