"""Two runs held against each other: turns and calls aligned, and the first place where they part."""
