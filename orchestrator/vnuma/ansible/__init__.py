"""What the collection's action plugins share."""
