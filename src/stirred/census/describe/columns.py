"""Find the role of each column of a file: from known names, facts about its values, and uniqueness."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from stirred.census.records import count_used_again
from stirred.census.schema import Source
from stirred.census.variables import normalise_digits
from stirred.frames import collect_frame

# Names that columns and files often have, in several languages; they only break ties where the records decide.

# Columns of surveys whose names say nothing to a stranger, by the role that they have there; declared here and nowhere
# else. Weights stand in the order in which one is chosen; a key of several columns is written with "+" between them,
# and "number" tells the persons of a household apart.
SURVEY_NAMES: Mapping[str, Mapping[str, str]] = {
    "EU-SILC": {
        "household": "db030 hb030 rx030 px030 rb040",
        "person": "rb030 pb030",
        "weight": "db090 rb050 pb040 rb060 rb062 rb063 rb064 pb050 pb060 pb070 pb080 db080",
        "place": "db020 rb020 hb020 pb020 db040 db060 db062",
        "size": "hx040",
        "personal": "rb090 pb150 rx010 rx020 px020",
        "age": "rx010 rx020 px020",
    },
    "EU-LFS": {
        "household": "hhnum qhhnum",
        "number": "hhseqnum seqnum",
        "weight": "coeff coeffy coeffq coeffhh coefc coeffmod",
        "place": "nuts nuts1 nuts2 nuts3 regionw",
        "size": "hhnbpers",
    },
    "EU-SES": {
        "id": "idunit key_b key_e key_l ident",
        "weight": "weights weightsemployees weightsemployers b52 a61 a71",
        "place": "location a11",
    },
    "DHS": {
        "household": "hhid caseid",
        "key": "hv001+hv002 v001+v002 mv001+mv002",
        "number": "hvidx v003 mv003",
        "weight": "hv005 v005 mv005 hv028 d005",
        "place": "hv000 v000 hv024 v024 mv024 hv001 v001 mv001 hv021 v021",
        "size": "hv009",
        "personal": "hv104 hv105 v012 mv012",
        "age": "hv105 v012 mv012",
    },
    "LSMS": {
        "household": "hhid hh_id case_id household_id household_id2 y2_hhid y3_hhid y4_hhid y5_hhid sdd_hhid",
        "person": "indidy1 indidy2 indidy3 indidy4 indidy5 individual_id individual_id2",
        "number": "indiv",
        "key": "cluster+hh clust+hh clust+nh clust+hhno cluster+hhno ea+hh ea+hhno ea_id+hh",
        "weight": "hh_wgt hhweight y5_panelweight y4_weights panelweight pw_w1 pw_w2 pw_w3 pw_w4 pw_w5 wta_hh wta_s",
        "place": "saq01 saq02 saq03 saq06 saq07 hh_a01_1 hh_a02_1 hh_a03_1 ea_id ea_id2 clusterid",
        "size": "hhsize hh_size hhsizey1",
    },
    "IPUMS": {
        "household": "serial cbserial cpsid hrhhid",
        "person": "cpsidp cpsidv",
        "key": "sample+serial year+month+serial year+serial country+year+serial",
        "number": "pernum",
        "weight": "hhwt perwt asecwth asecwt hwtfinl wtfinl earnwt compwt",
        "place": "statefip stateicp countyfip countyicp countyfips metarea met2013 metfips geolev1 geolev2",
        "size": "numprec",
    },
    "ACS": {
        "household": "serialno",
        "number": "sporder",
        "weight": "wgtp pwgtp",
        "place": "st",
        "personal": "agep",
        "age": "agep",
    },
    "EPH (Argentina)": {
        "household": "codusu",
        "key": "codusu+nro_hogar",
        "number": "componente",
        "weight": "pondera pondih pondii pondiio pondih_old",
        "place": "aglomerado",
        "size": "ix_tot",
        "personal": "ch03 ch04 ch06",
        "age": "ch06",
    },
    "ENIGH, ENOE (Mexico)": {
        "household": "folioviv foliohog",
        "key": "folioviv+foliohog cd_a+ent+con+v_sel+n_hog",
        "number": "numren n_ren",
        "weight": "factor fac fac_tri factor_hog factor_viv",
        "place": "entidad ent ubica_geo localidad upm cve_ent cve_mun",
        "size": "tot_integ",
        "personal": "parentesco sexo edad eda",
        "age": "edad eda",
    },
    "PNAD (Brazil)": {
        "key": "upa+v1008+v1014 upa+v1008",
        "number": "v2003",
        "weight": "v1028 v1027",
        "place": "uf upa rm_ride",
        "size": "v2001",
        "personal": "v2007 v2009",
        "age": "v2009",
    },
    "CASEN (Chile)": {
        "household": "folio",
        "person": "id_persona",
        "weight": "expr expc expr_hogar",
        "place": "comuna",
        "size": "tot_per numper",
    },
    "GEIH (Colombia)": {
        "key": "directorio+secuencia_p",
        "number": "orden",
        "weight": "fex_c fex_c18 fex_c_2011",
        "place": "dpto depto",
    },
    "ENAHO (Peru)": {
        "key": "conglome+vivienda+hogar",
        "number": "codperso",
        "weight": "factor07 facpob07 factorto",
        "place": "ubigeo dominio conglome",
        "size": "mieperho totmieho",
        "age": "p208a",
    },
    "ECH (Uruguay)": {
        "household": "numero",
        "number": "nper",
        "weight": "pesoano pesomen pesotri w_ano",
        "place": "locagr",
    },
    "ENEMDU (Ecuador)": {
        "household": "id_hogar",
        "person": "id_persona",
        "weight": "fexp",
        "place": "ciudad",
    },
    "EPA (Spain)": {
        "key": "prov+nvivi",
        "number": "npers",
        "weight": "factorel",
        "place": "ccaa",
    },
    "EEC, RP (France)": {
        "household": "ident",
        "number": "noi",
        "weight": "extri extrian ipondi ipondl",
        "place": "dep dept iris arm cantville",
    },
    "Mikrozensus, SOEP (Germany)": {
        "weight": "ef952 phrf hhrf",
        "place": "bula ef1",
    },
    "LFS, FRS (United Kingdom)": {
        "household": "hserialp sernum",
        "person": "casenop caseno",
        "weight": "pwt gross4 gross3",
        "place": "govtof govtof2 gvtregn uresmc laua",
    },
}


def list_role_names(role: str) -> tuple[str, ...]:
    """Return the names of columns with a role in any survey, in the order of the list.

    >>> "hvidx" in list_role_names("number"), "pondera" in list_role_names("weight")
    (True, True)
    """
    return tuple(
        dict.fromkeys(name for survey in SURVEY_NAMES.values() for name in survey.get(role, "").split())
    )


def list_survey_keys() -> tuple[tuple[str, ...], ...]:
    """Return the keys of several columns that tell the households of a survey apart; longer ones first."""
    found = (tuple(key.split("+")) for key in list_role_names("key"))
    return tuple(sorted(found, key=lambda parts: -len(parts)))


def _role_pattern(role: str) -> str:
    return rf"^({'|'.join(map(re.escape, list_role_names(role)))})$"


def _compile_names(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


HOUSEHOLD_ID_NAMES = _compile_names(
    r"^(hh?|hhold|house|household|home|unit|dwelling|hogar|vivienda|haushalt|menage|foyer|hushall)_?s?"
    r"(id|no|nr|num|number|key|code|serial)$",
    r"^(hh?|household|hogar|vivienda|haushalt|menage)$",
    r"^(hid|hhid|hhnr|hhno|idhh|id_?hogar|id_?haushalt|id_?menage|folio|serial|serialno|serialnumber|mafid|db030)$",
    r"^(ori|orig|new|real)_hid$",
    r"house_?hold.*id|hh.*(id|serial)$|id.*(hh|household)$",
    _role_pattern("household"),
)
PERSON_ID_NAMES = _compile_names(
    r"^(p|person|ind|indiv|individual|people|persona|pers)_?(id|no|nr|num|number|key|serial)$",
    r"^(pid|id_?ind|idper|rb030|pnr)$",
    _role_pattern("person"),
)
PERSON_NUMBER_NAMES = _compile_names(_role_pattern("number"))
AGE_NAMES = _compile_names(r"^(age|agep|edad|alter|age_?(in_?)?years?)$", _role_pattern("age"))
ID_NAMES = _compile_names(
    r"(^|_)(id|serial|serialno|key|uuid|guid)$",
    r"serial",
    r"^id(_|\d|$)",
    r"_(nr|no|num|number)$",
    _role_pattern("id"),
)
INDEX_NAMES = _compile_names(
    r"^$", r"^unnamed", r"^index$", r"^rownames?$", r"^x$", r"^_?duplicated_\d+$", r"^column_1$"
)
SIZE_NAMES = _compile_names(
    r"^(size|persons|np|hh_?size|hhsz|hsize|numprec|household_size|n_?persons|npersons|(n_?|num_?|hh_?|household_?)?members|taille|tamano|groesse)$",
    _role_pattern("size"),
)
WEIGHT_NAMES = _compile_names(
    r"^(?!.*(body|birth|baby)).*(weight|wgt|wght|gewicht|poids|ponderac|ponderat)",
    r"^\w{0,4}wts?\d*$",
    r"(^|_)peso(_|$)",
    r"^(pw|hw|w|pond|vikt|fexp?|factor_?exp\w*|expansion)$",
    _role_pattern("weight"),
)
GEO_CODE_NAMES = _compile_names(r"^geo(id|code)(10|20)?$")
PLACE_NAMES = _compile_names(
    r"^(sub_?)?(nation|country|land|state|bundesland|province|provincia|provincie|prov|region|reg|departement|department|"
    r"depto|departamento|county|district|distrito|bezirk|distr|dist|canton|kanton|municipality|municipio|gemeinde|"
    r"commune|comuna|ward|tract|block|block_?group|ea|eacode|enumeration_?area|cluster|clust|psu|segment|village|"
    r"town|city|place|parish|parroquia|constituency|county_?fips|puma\d*|zone|postcode|plz|zip|db040|division|"
    r"location|woreda|kebele|regency|barangay|tehsil|upazila|oblast)"
    r"(_?(code|id|no|nr|num|name|\d+))?$",
    r"^(nuts|lau|adm|admin|geo)_?(lev|level)?_?\d*$",
    r"^geo[12]_[a-z]{2}(\d{4})?$",
    _role_pattern("place"),
)
COARSE_NAMES = _compile_names(
    r"^(nation|country|land|state|bundesland|province|provincia|prov|region|reg|nuts_?[012]|adm_?[012])",
    r"^(db020|rb020|hb020|pb020|hv000|v000|hv024|v024|mv024|entidad|ent|uf|dpto|ccaa|statefip|stateicp|st|bula)$",
)
AMOUNT = _compile_names(
    r"income|^inc|inc$|earn|salar|wage|rent$|^rent|price|amount|expend|consum|spend|cost|tax|revenue|turnover|sales|profit|"
    r"loan|debt|wealth|asset|saving|pension|benefit|value$|ingreso|^ing_|_ing$|renta|sueldo|salario|gasto|monto|valor|"
    r"einkommen|lohn|gehalt|miete|umsatz|ausgaben|revenu|salaire|loyer|depense|reddito|spesa|affitto|rendimento|despesa",
    r"^(itf|ipcf|inctot|ftotinc|hhincome|hy010|hy020|py010g|p21|p47t)$",
)
CODED = _compile_names(
    r"isco|isic|nace|naics|sic\d|occup|ocup|icd|coicop|cod(e|igo|ice)?(_|\d|$)|(^|_)(cod|zip|plz|postcode|tel|phone)"
)
COORDINATE = _compile_names(
    r"^(lat|lon|long|lng|latitude|longitude|east|easting|north|northing|[xy]|[xy]_?coord\w*|coord\w*|utm\w*|gps\w*)(_?(x|y|dd|m))?$",
    r"(latitude|longitude|easting|northing)",
)
OF_PERSONS = _compile_names(
    r"surname|(first|last|given|family|full|middle|sur|maiden)_?name|^name$|nachname|vorname|familienname|apellido|^nombres?$"
    r"|prenom|prénom|^nom$|cognome|^nome$|sobrenome|achternaam|voornaam|efternamn|förnamn|nazwisko|^imie$"
)
LABEL_NAMES = _compile_names(r"_?(name|label|txt|text|bez|nom)$")
MEASURE_NAMES = _compile_names(
    r"age|year|income|inc$|^inc|salary|wage|rent$|rooms?$|price|amount|total|number|count(?!y|ry)|size|persons|hours|"
    r"birth|date|edad|alter|ingreso|einkommen|revenu|isco|nace|occup|educ"
)
PERSONAL_NAMES = _compile_names(
    r"^(age|sex|gender|relat\w*|relation\w*|marital\w*|edad|sexo|alter|geschlecht)$",
    _role_pattern("personal"),
)
RECORD_TYPE_NAMES = (
    ("household", _compile_names(r"house|home|unit|(^|_)hh|dwelling|hogar|vivienda|haushalt|menage")),
    ("person", _compile_names(r"person|people|popul|individual|member|indiv")),
)


# Facts about the columns of a file that decide their roles: kinds, empty fields, distinct values, uniqueness.

MAX_CATEGORY_VALUES = 100  # a column with at most this many values is guessed to be a category
MIN_ROWS_FOR_UNIQUENESS = 20  # with fewer records a column may be unique by chance
WHOLE_NUMBER_PATTERN = r"^(0|-?[1-9]\d{0,17})$"
CODE_PATTERN = r"^[+-]?(0\d|\d{19})"  # 007, or longer than integers are stored: a code, not a number
EMPTY_MARKS = ("NA", ".", "NaN", "NULL")  # texts that stand for an empty field
EXACT_FLOAT_LIMIT = 2.0**53  # floating-point numbers below it are exact integers
POINT_PATTERN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
COMMA_PATTERN = r"^[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?$"

Shape = Literal["whole", "decimal", "text", "truth", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What the records say about one column; counts stay inside and are written only when asked for."""

    name: str
    dtype: pl.DataType
    shape: Shape
    comma: bool = False  # numbers are written with a decimal comma
    marks: tuple[str, ...] = ()  # texts in it that may stand for an empty field
    empty: int = 0
    distinct: int = 0
    lowest: float | None = None
    highest: float | None = None
    unique: bool = False

    @property
    def is_nested(self) -> bool:
        """Return whether the fields hold no single values, so that the column cannot be a variable."""
        return self.dtype.is_nested() or self.dtype in (pl.Binary, pl.Object)

    @property
    def may_be_code(self) -> bool:
        """Return whether the values can be codes or identifiers."""
        return self.shape in ("whole", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One file or table that is described: how it is read, and the facts about its columns."""

    name: str
    frame: pl.LazyFrame
    rows: int
    columns: Mapping[str, ColumnFacts]
    source: Source | None = None
    labels: Mapping[str, Mapping[str | int, str]] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # columns made of several, and those
    home_key: str = ""  # the one of them that tells households apart

    @property
    def has_enough_rows(self) -> bool:
        """Return whether there are enough records for uniqueness to mean something."""
        return self.rows >= MIN_ROWS_FOR_UNIQUENESS

    def match_names(self, pattern: re.Pattern[str]) -> list[ColumnFacts]:
        """Return the columns whose name fits a pattern of ``names``."""
        return [facts for facts in self.columns.values() if pattern.search(facts.name)]


def empty_to_null(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return text values with empty text as missing; other values unchanged."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        value = value.cast(pl.String)
    elif dtype != pl.String:
        return value
    return pl.when(value != "").then(value)


def read_values(facts: ColumnFacts) -> pl.Expr:
    """Return the values of a column, with the marks of empty fields as missing where it holds numbers."""
    value = empty_to_null(pl.col(facts.name), facts.dtype)
    return pl.when(~value.is_in(facts.marks)).then(value) if facts.marks and facts.shape != "text" else value


def find_facts(frame: pl.LazyFrame) -> tuple[int, dict[str, ColumnFacts]]:
    """Return the number of records and the facts about each column, by streaming passes.

    >>> rows, facts = find_facts(pl.LazyFrame({"w": ["0,5", "1"], "n": [1.0, 2.0]}))
    >>> rows, facts["w"].shape, facts["w"].comma, facts["n"].shape
    (2, 'decimal', True, 'whole')
    """
    schema = frame.collect_schema()
    asked = [pl.len().alias("")]
    for name, dtype in schema.items():
        asked += [
            expression.alias(f"{name}\x00{key}")
            for key, expression in _fact_expressions(empty_to_null(pl.col(name), dtype), dtype).items()
        ]
    row = collect_frame(frame.select(asked), streaming=True).row(0, named=True)
    rows = int(row[""])
    facts = {}
    for name, dtype in schema.items():
        found = {key.split("\x00")[-1]: value for key, value in row.items() if key.startswith(f"{name}\x00")}
        facts[name] = _make_facts(name, dtype, rows, found, frame)
    return rows, facts


def _fact_expressions(value: pl.Expr, dtype: pl.DataType) -> dict[str, pl.Expr]:
    asked = {"empty": value.null_count()}
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Null):
        return asked
    asked["distinct"] = value.approx_n_unique()
    if dtype == pl.String:
        asked |= {f"mark {mark}": (value == mark).sum() for mark in EMPTY_MARKS}
        filled = value.filter(~value.is_in(EMPTY_MARKS))
        asked["not_whole"] = (~normalise_digits(filled).str.contains(WHOLE_NUMBER_PATTERN)).sum()
        asked["not_point"] = (~filled.str.contains(POINT_PATTERN)).sum()
        asked["not_comma"] = (~filled.str.contains(COMMA_PATTERN)).sum()
        asked["padded"] = filled.str.contains(CODE_PATTERN).sum()
        number = filled.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        asked |= {"lowest": number.min(), "highest": number.max()}
    elif dtype.is_float():
        asked["not_whole"] = (~((value == value.floor()) & (value.abs() < EXACT_FLOAT_LIMIT))).sum()
        asked |= {"lowest": value.min(), "highest": value.max()}
    elif dtype.is_numeric():
        asked |= {"lowest": value.min().cast(pl.Float64), "highest": value.max().cast(pl.Float64)}
    return asked


def _make_facts(
    name: str, dtype: pl.DataType, rows: int, found: Mapping[str, int | float | None], frame: pl.LazyFrame
) -> ColumnFacts:
    empty, distinct = int(found["empty"] or 0), int(found.get("distinct") or 0)
    marked = {mark: int(found.get(f"mark {mark}") or 0) for mark in EMPTY_MARKS}
    shape, comma = _find_shape(dtype, found, rows - empty - sum(marked.values()))
    empty += 0 if shape == "text" else sum(marked.values())
    # the number of distinct values is an estimate: uniqueness is decided by comparing all of them
    likely = empty == 0 and rows > 0 and distinct >= rows * 0.7
    unique = likely and shape != "truth" and count_used_again(frame.select(name), rows) == 0
    lowest, highest = found.get("lowest"), found.get("highest")
    return ColumnFacts(
        name=name,
        dtype=dtype,
        shape=shape,
        comma=comma,
        marks=tuple(mark for mark, count in marked.items() if count),
        empty=empty,
        distinct=rows if unique else distinct,
        lowest=None if lowest is None else float(lowest),
        highest=None if highest is None else float(highest),
        unique=unique,
    )


def _find_shape(
    dtype: pl.DataType, found: Mapping[str, int | float | None], filled: int
) -> tuple[Shape, bool]:
    if dtype == pl.Boolean:
        return "truth", False
    if dtype.is_integer():
        return "whole", False
    if dtype.is_decimal():
        return "decimal", False
    if dtype.is_float():
        return ("decimal" if found["not_whole"] or not filled else "whole"), False
    if dtype == pl.String and filled:
        if not found["not_whole"]:
            return "whole", False
        if found["padded"]:
            return "text", False
        if not found["not_point"] or not found["not_comma"]:
            return "decimal", bool(found["not_point"])
    textual = dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)
    return ("text" if textual else "other"), False


# Guess which column of a file is the identifier, the weight and the size, and which must not be a variable.

UNIQUE_REASON = "every record has another value"


@dataclass(slots=True, kw_only=True)
class ColumnRoles:
    """The special columns of one record type, each with the reason, and the columns that are left out."""

    id: str = ""
    household: str = ""
    household_from: str = ""
    size: str = ""
    weight: str = ""
    why: dict[str, str] = field(default_factory=dict)  # role → reason
    leave_out: dict[str, str] = field(default_factory=dict)  # column → reason
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # columns made of several, and those

    @property
    def special_columns(self) -> set[str]:
        """Return the columns that are not variables; an area that is part of a key stays one."""
        special = {self.id, self.household, self.household_from, self.weight}
        parts = {part for name in special for part in self.keys.get(name, ()) if not PLACE_NAMES.search(part)}
        return (special - {""}) | set(self.leave_out) | set(self.keys) | parts


def find_roles(sheet: Sheet, *, link: str = "") -> ColumnRoles:
    """Return the special columns of a file; ``link`` names the household column where it is known."""
    roles = ColumnRoles(household=link, keys=sheet.keys)
    nested = [facts.name for facts in sheet.columns.values() if facts.is_nested]
    roles.leave_out = dict.fromkeys(nested, "a field holds several values, or bytes")
    if "" in sheet.columns:  # the row names of R, or the index of pandas
        roles.leave_out[""] = "the column has no name"
    _find_identifier(sheet, roles)
    _find_weight(sheet, roles)
    sizes = [
        facts for facts in sheet.match_names(SIZE_NAMES) if facts.shape == "whole" and _is_at_least(facts, 0)
    ]
    if sizes and not link:
        roles.size, roles.why["size"] = sizes[0].name, "named like one; it must count the persons exactly"
    return roles


def _find_identifier(sheet: Sheet, roles: ColumnRoles) -> None:
    unique = [
        facts
        for facts in sheet.columns.values()
        if (facts.unique or not sheet.rows)
        and facts.name != roles.household
        and facts.name not in sheet.labels
    ]
    able = [facts for facts in unique if facts.may_be_code]
    rank = {facts.name: _rank_identifier(facts, sheet) for facts in able}
    ranked = sorted(able, key=lambda facts: rank[facts.name])
    ranked = [
        facts for facts in ranked if rank[facts.name] < 2 or (sheet.has_enough_rows and rank[facts.name] == 2)
    ]
    if ranked:
        best = ranked[0]
        roles.id = best.name
        rivals = [facts.name for facts in ranked[1:] if rank[facts.name] == rank[best.name]]
        liked = "unique, named like one" if rank[best.name] < 2 else "unique, not named like one"
        liked = "unique together" if best.name in sheet.keys else liked
        roles.why["id"] = f"{liked}; not decided against {', '.join(rivals)}" if rivals else liked
    if not sheet.has_enough_rows:
        return
    weights = {facts.name for facts in _list_weights(sheet)}
    for facts in unique:
        if facts.name not in {roles.id, *weights, *roles.leave_out, *sheet.keys}:
            what = "an identifier" if facts.may_be_code else "a number"
            roles.leave_out[facts.name] = (
                f"{UNIQUE_REASON}, so it would tell who is who; not decided whether it is {what}"
            )


def _rank_identifier(facts: ColumnFacts, sheet: Sheet) -> int:
    if facts.name in sheet.keys:
        return -1
    if HOUSEHOLD_ID_NAMES.search(facts.name) or PERSON_ID_NAMES.search(facts.name):
        return 0
    if INDEX_NAMES.search(facts.name) or AMOUNT.search(facts.name):
        return 3
    return 1 if ID_NAMES.search(facts.name) else 2


def _find_weight(sheet: Sheet, roles: ColumnRoles) -> None:
    found = [facts for facts in _list_weights(sheet) if facts.name not in (roles.id, roles.household)]
    if not found:
        return
    listed = {name: place for place, name in enumerate(list_role_names("weight"))}
    best = min(
        found,
        key=lambda facts: (
            listed.get(facts.name.lower(), len(listed)),
            facts.shape != "decimal",
            len(facts.name),
        ),
    )
    roles.weight = best.name
    unique = f"; {UNIQUE_REASON}, so it tells who is who" if best.unique and sheet.has_enough_rows else ""
    sign = "positive" if best.lowest else "never negative"
    roles.why["weight"] = f"{sign}, named like one{unique}"
    for facts in found:
        if facts is not best:
            roles.leave_out[facts.name] = (
                f"named like a weight beside {best.name}; not decided which one to use"
            )


def _list_weights(sheet: Sheet) -> Sequence[ColumnFacts]:
    return [
        facts
        for facts in sheet.match_names(WEIGHT_NAMES)
        if facts.shape in ("decimal", "whole")
        and facts.empty == 0
        and _is_at_least(facts, 0)
        and (facts.shape == "decimal" or len(facts.name) > 2)
    ]


def _is_at_least(facts: ColumnFacts, bound: float) -> bool:
    return facts.lowest is not None and facts.lowest >= bound
