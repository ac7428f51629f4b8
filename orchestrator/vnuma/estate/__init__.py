"""Files about an estate: snapshots, RVTools exports, waivers, earlier checks."""
