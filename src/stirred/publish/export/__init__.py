"""Exports of a packet: a script that makes it again, an entry for a registry of deployments."""
