"""Which input is taken when: one after the other, but what takes long in pieces, and the rest behind it in order.

That are hand-overs, clients that come with many subscriptions, and events with long strings that many patterns are
looked for in (`foreseeing`). While one is under way here the broker takes a bounded amount of work in a turn, and asks
to be called again at once. What it is sent meanwhile waits; that is bounded as what is under way is, by the windows of
clients and brokers.
"""

from collections import deque
from collections.abc import Callable

from gapless.errors import GaplessError
from gapless.protocol import Effect, Expel, Input, Received, SetTimer, TimerFired
from gapless.protocols.gapless.clients.intake import weigh
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.pieces import Pieces

__all__ = ["GO_ON", "Turns"]

GO_ON = TimerFired("go on")


class Turns:
    """The turns of one broker, through all its lives."""

    def __init__(
        self,
        handle: Callable[[Input], None],
        has_work: Callable[[], bool],
        work: Callable[[], Pieces[None]],
        emit: Callable[[Effect], None],
        options: GaplessOptions,
        is_broker: Callable[[str], bool],
        foresee: Callable[[Input], Pieces[object] | None],
    ) -> None:
        """`foresee` does what takes long of an input beforehand, if there is anything such; `work` what it left to do,
        if it `has_work`."""
        self._handle = handle
        self._foresee = foresee
        self._has_work = has_work
        self._work = work
        self._emit = emit
        self._options = options
        self._is_broker = is_broker
        self._errand: Pieces[None] | None = None
        """The work of an input that takes long, or of what it began, that is not done yet."""
        self._waiting: deque[Input] = deque()
        """What came since that began."""
        self._is_resting = False
        """Whether a timer will let it go on."""

    @property
    def is_working(self) -> bool:
        """Whether an input is worked on in pieces, or others wait behind one."""
        return self._errand is not None or bool(self._waiting)

    def take(self, item: Input) -> None:
        """Take an input, at once or in its turn. When only others wait before it, so many are taken that all end."""
        if item == GO_ON:
            self._is_resting = False
            self._go_on(self._options.work_per_turn)
        elif self._errand is not None or self._waiting:
            self._waiting.append(item)
            if self._errand is None:
                self._go_on(2 * weigh(item))
        elif (work := self._foresee(item)) is not None:
            self._errand = self._with(item, work)
            self._go_on(self._options.work_per_turn)
        else:
            self._handle(item)
            if self._has_work():
                self._go_on(self._options.work_per_turn)

    def _with(self, item: Input, work: Pieces[object]) -> Pieces[None]:
        understood = yield from work
        self._take_late(item)
        if self._has_work():
            yield from self._work()
        del understood  # not before

    def _go_on(self, units: int) -> None:
        """Go on with what is under way, or else with what waits, for so many units of work; and later with the rest."""
        while units > 0:
            if self._errand is None and self._has_work():
                self._errand = self._work()
            if self._errand is not None:
                done = next(self._errand, None)
                if done is None:
                    self._errand = None
                else:
                    units -= done
            elif self._waiting:
                item = self._waiting.popleft()
                work = self._foresee(item)
                if work is not None:
                    self._errand = self._with(item, work)
                else:
                    self._take_late(item)
                    units -= weigh(item)
            else:
                return
        if not self._is_resting and (self._errand is not None or self._waiting or self._has_work()):
            self._is_resting = True
            self._emit(SetTimer(GO_ON.key, int(self._options.rest_ms * 1000)))

    def _take_late(self, item: Input) -> None:
        """Take an input that has waited. It is another's turn now: who said something wrong is sent away by name."""
        try:
            self._handle(item)
        except GaplessError as error:
            if not isinstance(item, Received) or self._is_broker(item.peer):
                raise
            self._emit(Expel(item.peer, str(error)))
