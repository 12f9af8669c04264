"""Tests of a broker's HTTP interface."""
