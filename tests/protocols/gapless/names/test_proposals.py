"""Changes of records: who is refused by one keeper, and has no answer of another, waits by lot before it asks again."""

from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.name_messages import AskName, KeepName, NameAnswer, NameEntry, NameMessage, NameRecord
from gapless.protocols.gapless.names.proposals import PATIENCE, Proposal, Proposals

KEEPERS = ["b0", "b1", "b2"]
RECORD = NameRecord("n", "TRUE", 0, {}, 1, 0, "c", "b0")


def test_who_was_refused_while_a_keeper_is_silent_does_not_ask_again_at_once() -> None:
    sent: list[NameMessage] = []
    proposals = Proposals(
        name_life("b0", 0), KEEPERS, lambda: 1, lambda peer, message: sent.append(message), lambda timer: None
    )
    proposals.propose(Proposal("n", lambda record: RECORD, lambda record, refusal: None, lambda: True))
    asked = sent[-1]
    assert isinstance(asked, AskName)
    for keeper in ("b0", "b1"):
        entry = NameEntry("n", asked.ballot, (0, ""), None)
        proposals.hear(keeper, NameAnswer(asked.request, asked.ballot, False, entry))
    assert isinstance(sent[-1], KeepName)
    larger = NameEntry("n", (asked.ballot[0] + 1, name_life("b1", 0)), (0, ""), None)
    proposals.hear("b1", NameAnswer(asked.request, asked.ballot, True, larger))
    sent.clear()
    for _ in range(PATIENCE):
        proposals.tick()
    assert sent == [], "b1, which wants it too, may ask at just this time"
    for _ in range(PATIENCE + 1):
        proposals.tick()
    assert {type(message) for message in sent} == {AskName}, "then it begins anew"
