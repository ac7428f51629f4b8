"""Mutating valid inputs: whatever they become, vnuma answers, or raises its own error, in time."""
