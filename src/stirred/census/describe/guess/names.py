"""Names that columns and files often have, in several languages; they only break ties where the records decide."""

import re


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


HOUSEHOLD_ID = _words(
    r"^(hh?|hhold|house|household|home|unit|dwelling|hogar|vivienda|haushalt|menage|foyer|hushall)_?s?"
    r"(id|no|nr|num|number|key|code|serial)$",
    r"^(hh?|household|hogar|vivienda|haushalt|menage)$",
    r"^(hid|hhid|hhnr|hhno|idhh|id_?hogar|id_?haushalt|id_?menage|folio|serial|serialno|serialnumber|mafid|db030)$",
    r"^(ori|orig|new|real)_hid$",
    r"house_?hold.*id|hh.*(id|serial)$|id.*(hh|household)$",
)
PERSON_ID = _words(
    r"^(p|person|ind|indiv|individual|people|persona|pers)_?(id|no|nr|num|number|key|serial)$",
    r"^(pid|id_?ind|idper|rb030|pnr)$",
)
ID = _words(r"(^|_)(id|serial|serialno|key|uuid|guid)$", r"serial", r"^id(_|\d|$)", r"_(nr|no|num|number)$")
INDEX = _words(r"^$", r"^unnamed", r"^index$", r"^rownames?$", r"^x$", r"^_?duplicated_\d+$", r"^column_1$")
SIZE = _words(
    r"^(size|persons|np|hh_?size|hhsz|hsize|numprec|household_size|n_?persons|npersons|(n_?|num_?|hh_?|household_?)?members|taille|tamano|groesse)$"
)
WEIGHT = _words(
    r"^(?!.*(body|birth|baby)).*(weight|wgt|wght|gewicht|poids|ponderac|ponderat)",
    r"^\w{0,4}wts?\d*$",
    r"(^|_)peso(_|$)",
    r"^(pw|hw|w|pwgtp|wgtp|db090|rb050|pond|vikt|fexp?|factor_?exp\w*|expansion)$",
)
GEO_CODE = _words(r"^geo(id|code)(10|20)?$")
PLACE = _words(
    r"^(sub_?)?(nation|country|land|state|bundesland|province|provincia|provincie|prov|region|reg|departement|department|"
    r"depto|departamento|county|district|distrito|bezirk|distr|dist|canton|kanton|municipality|municipio|gemeinde|"
    r"commune|comuna|ward|tract|block|block_?group|ea|eacode|enumeration_?area|cluster|clust|psu|segment|village|"
    r"town|city|place|parish|parroquia|constituency|county_?fips|puma\d*|zone|postcode|plz|zip|db040|division|"
    r"location|woreda|kebele|regency|barangay|tehsil|upazila|oblast)"
    r"(_?(code|id|no|nr|num|name|\d+))?$",
    r"^(nuts|lau|adm|admin|geo)_?(lev|level)?_?\d*$",
)
COARSE = _words(
    r"^(nation|country|land|state|bundesland|province|provincia|prov|region|reg|nuts_?[012]|adm_?[012])"
)
NAME_OF = _words(r"_?(name|label|txt|text|bez|nom)$")
MEASURE = _words(
    r"age|year|income|inc$|^inc|salary|wage|rent$|rooms?$|price|amount|total|number|count(?!y|ry)|size|persons|hours|"
    r"birth|date|edad|alter|ingreso|einkommen|revenu|isco|nace|occup|educ"
)
PERSONAL = _words(r"^(age|sex|gender|relat\w*|relation\w*|marital\w*|edad|sexo|alter|geschlecht|agep|rb090)$")
RECORD_TYPES = (
    ("household", _words(r"house|home|unit|(^|_)hh|dwelling|hogar|vivienda|haushalt|menage")),
    ("person", _words(r"person|people|popul|individual|member|indiv")),
)
