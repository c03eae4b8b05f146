"""Learning to recall a cue: episodes, three small models, and their training, bit for bit."""
