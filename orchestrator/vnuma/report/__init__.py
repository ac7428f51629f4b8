"""What a run says, for people and programs: tables, CSV, JSON and one self-contained page."""
