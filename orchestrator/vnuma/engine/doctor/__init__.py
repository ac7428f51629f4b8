"""What a study needs from the outside, checked without changing anything."""
