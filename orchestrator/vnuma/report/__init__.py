"""Reports on a run, for people and programs: tables, CSV, JSON and one self-contained page."""
