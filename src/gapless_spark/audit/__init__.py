"""The audit of a trace on Spark: the rules of `gapless.checkers` in workers, for traces of any size."""

from gapless_spark.audit.judge import Audit, audit, first_anomalies

__all__ = ["Audit", "audit", "first_anomalies"]
