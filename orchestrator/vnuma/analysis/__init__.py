"""Statistics of a run: pure functions from samples to intervals and verdicts. See docs/statistics.md."""
