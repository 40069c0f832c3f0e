"""Topics: whole dialogues clustered without labels, named, counted, and their page."""
