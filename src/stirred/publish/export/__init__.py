"""What a packet is handed on as: a script, a registry entry."""
