"""What comes and goes between Recourse and the world: admission, backlogs, messages of the other side."""
