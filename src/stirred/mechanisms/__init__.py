"""HOW THE PROMISE IS KEPT: one folder for each mechanism, with its proof."""
