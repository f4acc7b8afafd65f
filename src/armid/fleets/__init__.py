"""Many arms over time: how they differ, and which of them change."""
