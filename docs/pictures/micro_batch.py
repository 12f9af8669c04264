"""Draws a micro-batch between two positions, next to one between offsets of partitions."""

from docs.pictures.drawing import Drawing

__all__ = ["draw_micro_batch"]

INK, FILL, EDGE, QUIET, WRONG = "#1f3d66", "#eef3fa", "#8aa0bd", "#999", "#b03030"
JOURNALS = {"b0": 90, "b1": 140, "b2": 190}
EVENTS = {"b0": (120, 210, 300, 470, 560, 640), "b1": (150, 250, 420, 520, 610), "b2": (180, 290, 380, 450, 590, 660)}
QUESTION, ANSWER = (300, JOURNALS["b0"]), (380, JOURNALS["b2"])
FIRST, CUT, LAST = 230, 345, 540
"""The positions at which the batch begins, is divided, and ends."""
TASKS = {"task 1, through b0": (FIRST, CUT), "task 2, through b1": (CUT, LAST)}


def draw_micro_batch() -> str:
    """Return the picture: journals from left to right, positions across all of them, offsets in one partition each."""
    drawing = Drawing(720, 320, "A micro-batch lies between two positions of the whole network")
    drawing.box((FIRST, 62), (LAST - FIRST, 152), FILL, FILL)
    for name, y in JOURNALS.items():
        drawing.line((90, y), (690, y), EDGE)
        drawing.words((52, y + 4), name, INK, size=13, weight="bold")
        for x in EVENTS[name]:
            drawing.dot((x, y), QUIET)
    for start, end in zip([(275, 62), (275, 115), (400, 165)], [(275, 115), (400, 165), (400, 218)], strict=True):
        drawing.line(start, end, WRONG, "5 4")
    drawing.words((275, 236), "offsets by partition: an answer without its question", WRONG, "start", 11)
    for x, word in ((FIRST, "position"), (LAST, "position")):
        drawing.line((x, 48), (x, 226), INK)
        drawing.words((x, 40), word, INK, weight="bold")
    drawing.line((CUT, 62), (CUT, 214), INK, "2 4")
    drawing.arrow(QUESTION, (ANSWER[0] - 3, ANSWER[1] - 5), INK)
    for place, word, shift in ((QUESTION, "question", -12), (ANSWER, "its answer", 20)):
        drawing.dot(place, INK)
        drawing.words((place[0], place[1] + shift), word, INK, size=11)
    for word, (since, until) in TASKS.items():
        drawing.box((since + 4, 256), (until - since - 8, 40), FILL, INK)
        drawing.words(((since + until) / 2, 280), word, INK, size=11)
    drawing.words((610, 280), "one micro-batch", "#444", size=12)
    return drawing.text()
