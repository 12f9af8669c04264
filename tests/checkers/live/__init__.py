"""Tests of `gapless.checkers.live`."""
