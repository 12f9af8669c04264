"""The data pipeline of Gapless on Spark. Only this package imports PySpark."""
