"""The design rules: data, each with a small pure function over typed facts. No I/O."""
