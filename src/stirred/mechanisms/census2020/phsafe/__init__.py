"""PHSafe: the Supplemental Demographic and Housing Characteristics File (persons joined to households)."""
