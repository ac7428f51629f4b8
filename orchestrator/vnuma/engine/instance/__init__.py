"""Settings inside the guest that a study may change: read, set, checked and restored."""
