"""Gapless: content-based publish/subscribe that misses nothing and keeps effects behind their causes."""
