"""Content-based filters: the SQL after WHERE, as in JMS message selectors.

>>> from gapless.filters import FilterIndex, parse
>>> cheap = parse("symbol = 'ABC' AND price < 10")
>>> cheap.matches({"symbol": "ABC", "price": 9.5})
True
>>> print(cheap.evaluate({"symbol": "ABC"}))
None
>>> parse("price < 20").covers(cheap)
True
>>> cheap.overlaps(parse("price BETWEEN 15 AND 30"))
False
>>> index: FilterIndex[str] = FilterIndex()
>>> index.add("alice", cheap)
>>> index.add("bob", parse("price IS NOT NULL"))
>>> index.match({"symbol": "XYZ", "price": 3})
['bob']
"""

from gapless.errors import FilterError
from gapless.filters.filter import Filter, parse
from gapless.filters.hints import attribute_hint, filter_hints
from gapless.filters.index import FilterIndex

__all__ = ["Filter", "FilterError", "FilterIndex", "attribute_hint", "filter_hints", "parse"]
