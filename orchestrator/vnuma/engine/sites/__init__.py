"""A study over several sites: each node of a mesh does its VMs' part of a run, with this same engine."""
