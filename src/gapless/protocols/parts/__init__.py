"""Modules that several protocols share."""
