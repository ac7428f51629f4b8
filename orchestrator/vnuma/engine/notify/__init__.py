"""Notifications of a run: mail, webhooks, commands."""
