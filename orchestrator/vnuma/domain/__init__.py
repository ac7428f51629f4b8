"""Pure knowledge: studies, arms, topologies, changes, recipes and predictions. No I/O."""
