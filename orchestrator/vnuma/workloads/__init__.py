"""Workloads: what runs on a boot, and its preparation and checks. The engine decides when, and stores
results.
"""
