"""Turns the metrics of a sweep into pictures, tables, comparisons with the papers, and one report."""
