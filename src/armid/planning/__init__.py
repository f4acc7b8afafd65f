"""Motion along a path with the identified model: reduced dynamics, motion generator, time-optimal laws."""
