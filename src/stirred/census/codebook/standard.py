"""Schemas of public file formats: the Bureau's redistricting files and its microdata."""

from pathlib import Path

from stirred.census.census import Census
from stirred.census.codebook.parse import parse_schema
from stirred.census.readers import pl94 as layout

_US_FROM_MICRODATA: dict[str, object] = {
    "spine": ["state", "county", "tract", "block_group", "block"],
    "level": {
        "state": {"columns": ["TABBLKST"]},
        "county": {"columns": ["TABBLKST", "TABBLKCOU"]},
        "tract": {"columns": ["TABBLKST", "TABBLKCOU", "TABTRACTCE"]},
        "block_group": {"columns": ["TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE"]},
        "block": {"columns": ["TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK"]},
    },
}
GQ_TYPES = {
    "0": "not in group quarters",
    "1": "correctional facilities for adults",
    "2": "juvenile facilities",
    "3": "nursing facilities",
    "4": "other institutional facilities",
    "5": "college or university student housing",
    "6": "military quarters",
    "7": "other noninstitutional facilities",
}
RACES = [f"{code:02d}" for code in range(1, 64)]


def pl94(folder: str | Path, *, summary_level: str = "750") -> Census:
    """Return the areas of one summary level of PL 94-171 legacy files, with all cells of P1 to P5 and H1."""
    names = [name for segment in layout.SEGMENT_TABLES for name in layout.list_cells(segment)]
    counts: dict[str, object] = dict.fromkeys([*names, "POP100", "HU100"], "integer")
    levels = {"040": 1, "050": 2, "140": 3, "150": 4, "750": 5}
    spine = ["state", "county", "tract", "block_group", "block"][: levels.get(summary_level, 5)]
    document = {
        "name": "PL 94-171",
        "geography": {
            "preset": "us",
            "spine": spine,
            "code": "GEOCODE",
            "off_spine": {
                "place": {"column": "PLACE", "of": spine[-1], "nests_in": "state", "label": "places"},
                "voting_district": {
                    "column": "VTD",
                    "of": spine[-1],
                    "nests_in": spine[min(1, len(spine) - 1)],
                },
            },
        },
        "record": {
            "area": {
                "files": [str(Path(folder).resolve())],
                "format": "pl94",
                "table": summary_level,
                "id": "LOGRECNO",
                "variables": {"NAME": {"type": "text", "missing": "keep"}, **counts},
            }
        },
        "rule": [
            {
                "name": "P1 and P2 count the same persons",
                "record": "area",
                "total": "P0010001",
                "parts": ["P0020001"],
            },
            {"name": "adults are persons", "record": "area", "at_most": ["P0030001", "P0010001"]},
            {
                "name": "persons in group quarters are persons",
                "record": "area",
                "at_most": ["P0050001", "P0010001"],
            },
            {
                "name": "housing units are occupied or vacant",
                "record": "area",
                "total": "H0010001",
                "parts": ["H0010002", "H0010003"],
            },
        ],
    }
    return Census(schema=parse_schema(document))


def ppmf(path: str | Path) -> Census:
    """Return the persons of a privacy-protected microdata file with the redistricting variables."""
    document = {
        "name": "PPMF",
        "geography": _US_FROM_MICRODATA,
        "record": {
            "person": {
                "files": [str(Path(path).resolve())],
                "format": "ppmf",
                "variables": {
                    "RTYPE": {
                        "levels": ["3", "5"],
                        "labels": {"3": "in a housing unit", "5": "in group quarters"},
                    },
                    "GQTYPE_PL": {"levels": list(GQ_TYPES), "labels": GQ_TYPES},
                    "VOTING_AGE": {"levels": ["1", "2"], "labels": {"1": "under 18", "2": "18 and over"}},
                    "CENHISP": {"levels": ["1", "2"], "labels": {"1": "not Hispanic", "2": "Hispanic"}},
                    "CENRACE": {"levels": RACES, "label": "race, 63 combinations"},
                },
            }
        },
        "rule": [
            {
                "name": "persons in housing units are in no group quarters",
                "record": "person",
                "forbid": {"RTYPE": ["3"], "GQTYPE_PL": [code for code in GQ_TYPES if code != "0"]},
            },
            {
                "name": "nobody under 18 lives in a nursing facility",
                "record": "person",
                "forbid": {"GQTYPE_PL": ["3"], "VOTING_AGE": ["1"]},
            },
        ],
    }
    return Census(schema=parse_schema(document))
