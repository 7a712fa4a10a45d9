"""The papers of a packet: specification, card and reports, with what they know of places, codes and risk."""
