"""The promise at a choice: from the codebook alone, or from the records once a person asks to read them."""
