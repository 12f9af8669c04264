"""From the metrics of a sweep to pictures, tables, comparisons with the papers, and one report."""
