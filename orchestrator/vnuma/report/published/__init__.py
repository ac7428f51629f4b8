"""Published figures: re-analysed, and compared with a run's."""
