"""The design rules: data, one small pure function each, over typed facts. No input, no output."""
