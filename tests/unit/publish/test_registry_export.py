"""The registry's YAML is accepted by the registry's own schema, and loses nothing exact."""

import json
from datetime import date
from fractions import Fraction

import jsonschema
import pytest
import yaml

from shared_data import extract
from stirred.catalog import catalog
from stirred.errors import InputError
from stirred.publish.registry import About, about_entry, registry_entry, to_yaml
from stirred.spec.card import Card
from stirred.spec.files import digest

DEPLOYED = [name for name in catalog if not name.startswith("whatif")]


@pytest.mark.parametrize("name", DEPLOYED)
def test_every_deployed_entry_is_accepted(name: str) -> None:
    schema = json.loads(extract("registry_schema.json").read_text())
    entry = catalog.entry(name)
    document = yaml.safe_load(to_yaml(registry_entry(entry.card(), about_entry(entry))))
    jsonschema.validate(document, schema)
    deployment = document["deployment"]
    assert digest(catalog[name]) in deployment["administrative"]["notes"]
    for invariant in catalog[name].multiverse:
        assert invariant.words() in deployment["dp_variant"]["unprotected_quantities"]
    date.fromisoformat(deployment["basic"]["publication_date"])


def test_budget_and_variant() -> None:
    persons = registry_entry(
        catalog.entry("pl-persons-2020").card(), about_entry(catalog.entry("pl-persons-2020"))
    )
    deployment = persons["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Zero-concentrated DP"  # type: ignore[index]
    loss = deployment["privacy_loss"]  # type: ignore[index]
    assert loss["privacy_parameters"] == {"rho": 2.556226}  # rounded up from 2.55622558
    assert "293764/114921" in loss["privacy_parameters_details"]
    assert Fraction(str(loss["privacy_parameters"]["rho"])) >= Fraction(293764, 114921)


def test_what_was_never_deployed_is_refused() -> None:
    with pytest.raises(InputError, match="never made"):
        about_entry(catalog.entry("whatif-state"))


def test_an_infinite_budget_is_refused() -> None:
    spec = catalog["pl-2020"]
    dropped = spec.without(next(iter(spec.multiverse)))
    with pytest.raises(InputError, match="infinite"):
        registry_entry(Card(dropped), about_entry(catalog.entry("pl-2020")))


def test_own_products_say_who_they_are() -> None:
    schema = json.loads(extract("registry_schema.json").read_text())
    values = {
        "name": "Tables 2030",
        "data_curators": ["Statistical Office"],
        "description": "Households by county.",
        "intended_use": "Planning.",
        "data_product_type": "Summary statistics",
        "data_product_region": "Somewhere",
        "publication_date": "2030-01-01",
    }
    document = registry_entry(Card(catalog["whatif-county"]), About.of(values))
    jsonschema.validate(yaml.safe_load(to_yaml(document)), schema)
    assert document["deployment"]["dp_variant"]["variant_name"] == "Pure DP"  # type: ignore[index]
    with pytest.raises(InputError, match="no field"):
        About.of({**values, "nam": "x"})
    with pytest.raises(InputError, match="product type"):
        About.of({**values, "data_product_type": "Tables"})
