"""Pure knowledge: studies, arms, topologies, changes, recipes and predictions. No input, no output."""
