"""Names that columns and files often have, in several languages; they only break ties where the records decide."""

import re
from collections.abc import Mapping

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
