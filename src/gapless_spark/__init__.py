"""The data pipeline of Gapless on Spark: everything that imports PySpark lives here."""
