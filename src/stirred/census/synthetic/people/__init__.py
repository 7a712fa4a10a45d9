"""Draw who lives where: neighbourhoods, households, facilities and persons."""
