"""What a client's node does about durable subscriptions that a group shares: opening, joining, taking over, leaving.

It opens the name under a *line*, a name of its own for each time. If nobody deals, or the one that does has not been
heard for a while, the client deals itself, and listens under that line; its own application is one more member. Else it
joins. Whenever anything is not as expected, it opens the name again, under another line, and tells what it holds.
"""

from collections import deque
from functools import partial
from typing import Any, Protocol

from gapless.names import Acknowledge, Acknowledged, JoinedGroup, Revoked
from gapless.protocol import Activated, Deliver, Effect, Ended, Rejected, SetTimer, Subscribe
from gapless.protocols.gapless.client_messages import (
    ClientHand,
    ClientOpen,
    ClientUnsubscribe,
    NameHanded,
    NameKept,
    NameLost,
    NameOpened,
    NameRefused,
)
from gapless.protocols.gapless.groups.dealer import SILENT_US, Dealer
from gapless.protocols.gapless.groups.member import Member
from gapless.protocols.gapless.name_messages import GroupDeal, GroupReport, NameRecord

__all__ = ["GROUP_TIMERS", "GroupClient"]

GROUP = "group"
"""The key of the timer."""
TICK_US = 500_000
GATHER = "group-gather"
GATHER_US = 20_000
"""How long reports gather that nobody waits for."""
GROUP_TIMERS = (GROUP, GATHER)


class Voice(Protocol):
    """To whom a client speaks: its broker, and whoever runs it."""

    attempt: int
    now: int
    is_attached: bool

    def send(self, message: Any) -> None:
        """To the broker."""
        ...

    def emit(self, effect: Effect) -> None:
        """To the runtime."""
        ...


class Reader(Protocol):
    """Who reads for a dealer, and hands over what a member was dealt."""

    def listen(self, call: Subscribe, dealer: Dealer, record: NameRecord) -> None:
        """Read for a dealer, from what its record says."""
        ...

    def deafen(self, line: str) -> None:
        """It reads no more."""
        ...

    def deal(self, effect: Deliver) -> int:
        """Hand over an event; returns which delivery that is."""
        ...


class GroupClient:
    """The groups that one client is in."""

    def __init__(self, name: str, voice: Voice, reader: Reader) -> None:
        self._name = name
        self._voice = voice
        self._send = voice.send
        self._emit = voice.emit
        self._reader = reader
        self._members: dict[str, Member] = {}
        """By subscription."""
        self._lines: dict[str, Member] = {}
        self._own: deque[tuple[str, GroupReport | GroupDeal]] = deque()
        """What this client says to itself: the line, and the word."""
        self._is_ticking = False
        self._is_gathering = False

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._members

    def has_line(self, line: str) -> bool:
        """Whether it is in a group under this line."""
        return line in self._lines

    def holds(self, name: str) -> bool:
        """Whether it is in the group of that name."""
        return any(member.call.name == name for member in self._members.values())

    @property
    def is_full(self) -> bool:
        """Whether a dealer has so much that waits that no more should come."""
        return any(member.dealer is not None and member.dealer.is_full for member in self._members.values())

    # ---- calls --------------------------------------------------------------------------------------------

    def subscribe(self, call: Subscribe) -> None:
        """Be one of the group."""
        member = self._members[call.subscription] = Member(call)
        self._open(member, -1, replace=call.replace)
        self._keep_ticking()

    def confirm(self, call: Acknowledge) -> None:
        """The application confirms all up to a delivery."""
        member = self._members.get(call.subscription)
        if member is not None:
            member.confirm(call.count)
            if call.is_urgent:
                self._report(member)
            self.work()

    def consumed(self, count: int) -> None:
        """The application has taken all up to this delivery."""
        for member in self._members.values():
            if member.call.ack == "auto":
                member.confirm(count)
        self.work()

    def unsubscribe(self, subscription: str) -> None:
        """The client wants no more of it."""
        member = self._members[subscription]
        member.is_leaving = True
        if member.dealer is not None:
            self._report(member)
            member.dealer.is_ending = True
            self.work()
        elif member.is_open:
            self._report(member)
        else:
            self._end(member)

    # ---- the session --------------------------------------------------------------------------------------

    def attached(self) -> None:
        """A broker holds the session: say again what may not have been heard."""
        for member in list(self._members.values()):
            if member.dealer is not None:
                member.dealer.hear_all(self._voice.now)
                self._send(member.dealer.confirming(self._voice.attempt, self._voice.now))
            elif member.is_leaving:
                self._end(member)
            else:
                self._open(member, 0 if member.was_open else -1, replace=member.call.replace and not member.was_open)

    def _open(self, member: Member, beyond: int, *, replace: bool = False) -> None:
        """Ask who deals; nobody who does in that generation, or an earlier one."""
        if member.line:
            self._close_line(member)
        call = member.call
        self._lines[member.renew()] = member
        redeliver_us = int(call.redeliver_s * 1e6)
        member.asked = self._voice.now
        self._send(
            ClientOpen(self._voice.attempt, member.line, call.name, call.filter, replace, True, redeliver_us, beyond)
        )

    def _close_line(self, member: Member) -> None:
        if member.dealer is not None:
            member.dealer = None
            self._reader.deafen(member.line)
        self._lines.pop(member.line, None)
        self._send(ClientUnsubscribe(self._voice.attempt, member.line))

    def _end(self, member: Member, reason: str = "") -> None:
        self._close_line(member)
        del self._members[member.call.subscription]
        if reason and not member.was_open:
            self._emit(Rejected(member.call, reason))
        else:
            self._emit(Ended(member.call.subscription, {}, reason=reason))

    # ---- what comes ---------------------------------------------------------------------------------------

    def receive(self, message: NameOpened | NameRefused | NameKept | NameLost | NameHanded) -> None:
        """The broker answers, or passes on what another client says."""
        member = self._lines.get(message.subscription)
        if member is None:
            return
        match message:
            case NameOpened():
                self._on_opened(member, message.record)
            case NameRefused():
                self._end(member, message.reason)
            case NameLost():
                if member.dealer is None or member.is_leaving:
                    self._end(member, "" if member.is_leaving else message.reason)
                else:
                    self._open(member, 0)
            case NameKept():
                if (
                    member.dealer is not None
                    and member.dealer.kept(message.serial, self._voice.now)
                    and member.dealer.has_left
                ):
                    member.dealer.end()
                    self.work()
                    self._end(member)
            case NameHanded():
                self._on_word(member, message.client, message.broker, message.word)
        self.work()

    def _on_opened(self, member: Member, record: NameRecord) -> None:
        if member.is_open:
            return
        is_first = not member.was_open
        if record.client == self._name:
            member.dealer = Dealer(
                member.call, member.line, record, member.asked, self._voice.now, partial(self._hand, member)
            )
            self._reader.listen(member.call, member.dealer, record)
        member.join(record.generation, record.client, record.broker, self._voice.now, record.redeliver_us)
        self._report(member)
        if is_first:
            self._emit(JoinedGroup(member.call.subscription, record.name, record.position))
            self._emit(Activated(member.call.subscription))

    def _on_word(self, member: Member, client: str, broker: str, word: GroupReport | GroupDeal) -> None:
        if word.generation != member.generation or not member.is_open:
            return
        if isinstance(word, GroupReport):
            if member.dealer is not None:
                member.dealer.report(client, broker, word, self._voice.now)
        elif client == member.client and word.line == member.line:
            self._on_deal(member, broker, word)

    def _on_deal(self, member: Member, broker: str, deal: GroupDeal) -> None:
        subscription = member.call.subscription
        member.heard, member.broker = self._voice.now, broker
        for number, event, redelivered in () if member.is_leaving else member.dealt(deal, self._voice.now):
            member.take(number, self._reader.deal(Deliver(event, subscription, redelivered)), event)
        revoked = member.refused(deal.refused)
        if revoked:
            self._emit(Revoked(subscription, revoked))
        member.kept(deal.kept)
        count = member.newly_over()
        if count is not None:
            self._emit(Acknowledged(subscription, count, True))
        if deal.is_over and member.dealer is None:
            if member.is_leaving:
                self._end(member)
            else:
                self._open(member, 0)

    # ---- what is said -------------------------------------------------------------------------------------

    def _hand(self, member: Member, client: str, broker: str, word: GroupDeal) -> None:
        """From a dealer to a member of its group."""
        if client == self._name:
            self._own.append((word.line, word))
        else:
            self._say(member, client, broker, word)

    def _say(self, member: Member, client: str, broker: str, word: GroupReport | GroupDeal) -> None:
        self._send(ClientHand(self._voice.attempt, member.line, member.call.name, client, broker, word))

    def _report(self, member: Member) -> None:
        if not member.is_open:
            return
        asked = member.asking()
        if asked is not None:
            self._emit(Acknowledged(member.call.subscription, asked, False))
        if member.dealer is not None:
            self._own.append((member.line, member.report(self._voice.now)))
        else:
            self._say(member, member.client, member.broker, member.report(self._voice.now))

    def work(self) -> None:
        """Go on with what has come: this client's own part at once, what others have to hear in a while."""
        while True:
            for member in list(self._members.values()):
                if member.dealer is not None:
                    if member.is_dirty and member.is_open:
                        self._report(member)
                    if not self._own:
                        member.dealer.deal(self._voice.now)
            if not self._own:
                break
            line, word = self._own.popleft()
            if line in self._lines:
                self._on_word(self._lines[line], self._name, self._lines[line].broker, word)
        waits = [self._rest_us(member) for member in self._members.values() if self._is_behind(member)]
        if waits and not self._is_gathering:
            self._is_gathering = True
            self._emit(SetTimer(GATHER, max(GATHER_US, min(waits))))

    def _rest_us(self, member: Member) -> int:
        return 0 if member.dealer is None else member.dealer.rests_until - self._voice.now

    def _is_behind(self, member: Member) -> bool:
        """Whether somebody else has to hear something."""
        return member.dealer.is_due if member.dealer is not None else member.is_dirty and member.is_open

    def _tell_gathered(self) -> None:
        """Say what has gathered."""
        self._is_gathering = False
        for member in self._members.values():
            if member.dealer is None:
                if member.is_dirty:
                    self._report(member)
            elif member.dealer.is_due and self._rest_us(member) <= 0:
                self._send(member.dealer.confirming(self._voice.attempt, self._voice.now))
        self.work()

    # ---- time ---------------------------------------------------------------------------------------------

    def timer_fired(self, key: str) -> None:
        """A timer of groups has run out."""
        if key == GROUP:
            self._tick()
        else:
            self._tell_gathered()

    def _keep_ticking(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self._emit(SetTimer(GROUP, TICK_US))

    def _tick(self) -> None:
        """Let everybody know that one is there, and see who is not."""
        self._is_ticking = False
        if not self._members:
            return
        self._keep_ticking()
        now = self._voice.now
        for member in list(self._members.values()):
            if not self._voice.is_attached or not member.is_open:
                member.heard = now
            elif member.dealer is not None:
                self._report(member)
                self.work()
                if member.dealer is not None:
                    member.dealer.tick(now)
            elif now - member.heard <= SILENT_US:
                self._report(member)
            elif member.is_leaving:
                self._end(member)
            else:
                self._open(member, member.generation)
        self.work()
