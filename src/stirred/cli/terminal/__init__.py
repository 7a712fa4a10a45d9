"""What the verbs share: flags, keys, engines, progress and output."""
