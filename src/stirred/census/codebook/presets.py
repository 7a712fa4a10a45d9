"""Named spines that many censuses share."""

from stirred.errors import SchemaError, did_you_mean

SPINES: dict[str, tuple[str, ...]] = {
    "us": ("state", "county", "tract", "block_group", "block"),
    "us-national": ("nation", "state", "county", "tract", "block_group", "block"),
    "nuts": ("nuts0", "nuts1", "nuts2", "nuts3", "lau"),
}

# Characters of a US GEOID at each level: state 2, county 3, tract 6, block group 1 (the first digit of the block's 4).
GEOID_WIDTHS: dict[str, int] = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
# Characters of a NUTS code at each level (Regulation (EC) No 1059/2003, Annex I): two letters, then one more each.
NUTS_WIDTHS: dict[str, int] = {"nuts0": 2, "nuts1": 3, "nuts2": 4, "nuts3": 5}


def preset_spine(preset: str) -> tuple[str, ...]:
    """Return the levels of a preset, coarsest first.

    >>> preset_spine("nuts")
    ('nuts0', 'nuts1', 'nuts2', 'nuts3', 'lau')
    """
    if preset not in SPINES:
        raise SchemaError(
            f"there is no geography preset {preset}",
            why="geography.preset names a spine that Stirred knows",
            fix=did_you_mean(preset, SPINES),
        )
    return SPINES[preset]
