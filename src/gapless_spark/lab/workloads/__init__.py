"""What happens in the runs of experiments: networks with clients, made from a few parameters and a seed."""

from collections.abc import Mapping

from gapless_spark.lab.workloads.scenario_document import ScenarioDocument
from gapless_spark.lab.workloads.tree_subscriptions import TreeSubscriptions
from gapless_spark.lab.workloads.workload import DirectWorkload, ScenarioWorkload, Workload

__all__ = ["WORKLOADS", "DirectWorkload", "ScenarioDocument", "ScenarioWorkload", "Workload"]

WORKLOADS: Mapping[str, type[Workload]] = {
    "scenario": ScenarioDocument,
    "tree-subscriptions": TreeSubscriptions,
}
"""By the name in an experiment's file."""
