"""Formats the normal form of a filter as text: its constraints on each attribute, one conjunction per line.

Numeric bounds are stored as closed intervals (`x < 10` is stored as "up to 9.999999999999998"). They are shown as open
bounds where that is the shorter number.
"""

from math import inf

from gapless.filters.constraints import BOTH, TRUE_ONLY, Constraint
from gapless.filters.names import render_name
from gapless.filters.normal_form import Conjunction, Disjunction
from gapless.filters.number_sets import EVERY_NUMBER, Interval, predecessor, successor
from gapless.filters.string_sets import EVERY_STRING, StringSet
from gapless.filters.syntax import render_value

__all__ = ["disjunction_lines"]


def disjunction_lines(disjunction: Disjunction) -> list[str]:
    """Return one line for each conjunction; none if the filter matches nothing."""
    return [_conjunction(conjunction) for conjunction in disjunction]


def _conjunction(conjunction: Conjunction) -> str:
    terms = [f"{render_name(name)}: {_constraint(constraint)}" for name, constraint in conjunction.constraints.items()]
    terms += sorted(f"[{text}]" for text in conjunction.opaque)
    return "; ".join(terms) or "anything"


def _constraint(constraint: Constraint) -> str:
    present = constraint.booleans == BOTH and constraint.numbers == EVERY_NUMBER and constraint.strings == EVERY_STRING
    if present and constraint.nan:
        return "anything" if constraint.absent else "present"
    states = ["absent"] if constraint.absent else []
    if constraint.booleans:
        states.append("true or false" if constraint.booleans == BOTH else str(constraint.booleans == TRUE_ONLY).lower())
    states += ["any number"] if constraint.numbers == EVERY_NUMBER else map(_interval, constraint.numbers)
    states += ["NaN"] if constraint.nan else []
    states += _strings(constraint.strings)
    return " or ".join(states)


def _interval(interval: Interval) -> str:
    low, high = interval
    if low == high:
        return f"= {low}"
    bounds = [] if low == -inf else [_bound(">", low, predecessor(low))]
    bounds += [] if high == inf else [_bound("<", high, successor(high))]
    return " and ".join(bounds)


def _bound(sign: str, closed: float, opened: float | None) -> str:
    """Return the text of a bound. `opened` is the nearest number outside the interval."""
    if opened is not None and len(f"{opened:.17g}") < len(f"{closed:.17g}"):
        return f"{sign} {opened:g}" if opened == float(f"{opened:g}") else f"{sign} {opened}"
    return f"{sign}= {closed}"


def _strings(strings: StringSet) -> list[str]:
    if strings == EVERY_STRING:
        return ["any string"]
    values = ", ".join(render_value(value) for value in sorted(strings.values))
    if not strings.complement:
        return [values] if values else []
    patterns = [f"like {render_value(pattern.to_text('!')[0])}" for pattern in strings.likes]
    patterns += [f"not like {render_value(pattern.to_text('!')[0])}" for pattern in strings.unlikes]
    patterns += [f"none of {values}"] if values else []
    return [f"string {' and '.join(patterns)}"]
