"""Topics are the filters `topic = '…'`: the only ones that a protocol of topics serves."""

from gapless.filters import FilterError, parse
from gapless.filters.syntax import Attribute, Comparison, Literal

__all__ = ["TopicError", "topic_of"]


class TopicError(Exception):
    """Raised for a filter that is not a topic, with a message for the user."""


def topic_of(text: str) -> str:
    """Return the topic that a filter asks for."""
    try:
        condition = parse(text).condition
    except FilterError as error:
        raise TopicError(str(error)) from None
    match condition:
        case Comparison("=", Attribute("topic"), Literal(str(topic))):
            return topic
        case Comparison("=", Literal(str(topic)), Attribute("topic")):
            return topic
    raise TopicError(
        f"the filter {text!r} is not a topic, but this protocol supports only topics; write topic = 'name'"
    )
