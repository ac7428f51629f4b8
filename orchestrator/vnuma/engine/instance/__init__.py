"""Settings inside the guest that a study may change: read, switched, proven, restored."""
