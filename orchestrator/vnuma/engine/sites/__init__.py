"""A study over several sites: each mesh node does its VMs' part of a run, with this same engine."""
