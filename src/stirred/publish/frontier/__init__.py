"""A family of releases of one census: risk against error, with what each promises."""
