"""The workloads of experiments: networks with clients, made from a few parameters and a seed."""

from collections.abc import Mapping

from gapless_papers.lab.workloads.broadcast_failures import BroadcastFailures
from gapless_papers.lab.workloads.failure_course import FailureCourse
from gapless_papers.lab.workloads.lossy_links import LossyLinks
from gapless_papers.lab.workloads.scenario_document import ScenarioDocument
from gapless_papers.lab.workloads.subscription_scale import SubscriptionScale
from gapless_papers.lab.workloads.topic_broadcast import TopicBroadcast
from gapless_papers.lab.workloads.topic_churn import TopicChurn
from gapless_papers.lab.workloads.topic_discussion import TopicDiscussion
from gapless_papers.lab.workloads.topic_popularity import TopicPopularity
from gapless_papers.lab.workloads.topic_publishers import TopicPublishers
from gapless_papers.lab.workloads.tree_failures import TreeFailures
from gapless_papers.lab.workloads.tree_subscriptions import TreeSubscriptions
from gapless_papers.lab.workloads.workload import DirectWorkload, ScenarioWorkload, Workload

__all__ = ["WORKLOADS", "DirectWorkload", "ScenarioDocument", "ScenarioWorkload", "Workload"]

WORKLOADS: Mapping[str, type[Workload]] = {
    "broadcast-failures": BroadcastFailures,
    "failure-course": FailureCourse,
    "lossy-links": LossyLinks,
    "scenario": ScenarioDocument,
    "subscription-scale": SubscriptionScale,
    "topic-broadcast": TopicBroadcast,
    "topic-churn": TopicChurn,
    "topic-discussion": TopicDiscussion,
    "topic-popularity": TopicPopularity,
    "topic-publishers": TopicPublishers,
    "tree-failures": TreeFailures,
    "tree-subscriptions": TreeSubscriptions,
}
"""The workloads by the name that experiment files use."""
