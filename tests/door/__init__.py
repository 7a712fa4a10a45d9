"""What comes through the door: sixty kinds of dangerous input, and the unedited path of ten layouts with its adversary."""
