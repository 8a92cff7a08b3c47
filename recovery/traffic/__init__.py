"""What comes and goes between Recourse and the world: admission, backlogs, messages of the other side.

Every number of a capacity stands in PostgreSQL and is counted by the writer's function (``runs/sql/capacity.sql``);
here is what is decided on it, and the patience of whoever waits for a moment.
"""
