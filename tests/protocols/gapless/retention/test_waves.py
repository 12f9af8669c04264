"""Waves: what lay before one may be forgotten when the one after it has been echoed as well."""

from collections.abc import Callable

from gapless.events import Event
from gapless.protocols.gapless.messages import Echo, Interval, Ranges, Wave
from gapless.protocols.gapless.retention.event_log import EventLog, Logged
from gapless.protocols.gapless.retention.waves import IDLE_MAX, PATIENCE_MAX, PATIENCE_MIN, Waves
from gapless.protocols.parts.clock import Clock


class Shelf:
    """Who admits nothing has nothing to tell of history."""

    def admitted(self, since: int, until: int) -> dict[str, Ranges]:
        return {}

    def last_admitted(self, since: int, until: int) -> dict[str, int]:
        return {}

    def dropped(self) -> int:
        return 0

    def note(self, interval: Interval | None) -> None:
        pass

    def reach(self, position: int) -> None:
        pass


class Root:
    """A root with a log, one child, and a client that confirms or does not."""

    def __init__(self) -> None:
        self.log = EventLog()
        self.forgotten: list[int] = []
        self.is_pressed = False
        self.waves = Waves(
            self.log.cut, self.forget, lambda: len(self.log) > 0, lambda: self.is_pressed, Clock(), Shelf()
        )
        self.released = 0
        self.next: Wave | None = None

    def forget(self, done: int) -> None:
        self.forgotten.append(done)
        self.log.forget(done)

    def add(self, seq: int) -> None:
        self.log.append(Logged([Event("p", seq, {})], ""))

    def start(self, owed: int = 0) -> Wave:
        """Start a wave, as soon as it is time for one."""
        wave = next(wave for wave in iter(self.waves.tick, False) if isinstance(wave, Wave))
        assert self.waves.begin(wave, ["u"], {"c": owed})
        return wave

    def echo(self, wave: Wave, busy: bool = False) -> bool:
        """The child echoes; tell whether that completes the wave."""
        self.waves.echoed("u", Echo(wave.number, busy, False))
        echo = self.waves.due_echo(lambda client: self.released)
        if echo is not None:
            self.next = self.waves.completed(echo)
        return echo is not None


def test_an_entry_is_forgotten_with_the_second_wave_after_the_one_that_cut_it_off() -> None:
    root = Root()
    root.add(1)
    for number in (1, 2):
        wave = root.start()
        assert (wave.number, wave.done) == (number, 0)
        assert len(root.log) == 1
        assert root.echo(wave)
    assert root.start() == Wave(3, final=2, reached=0, done=1, interval=Interval(1, 2, {}))
    assert len(root.log) == 0


def test_what_came_after_the_cut_waits_for_a_later_wave() -> None:
    root = Root()
    root.add(1)
    first = root.start()
    root.add(2)
    root.echo(first)
    root.echo(root.start())
    root.echo(root.start())
    assert len(root.log) == 1
    root.start()
    assert len(root.log) == 0


def test_nothing_is_done_while_a_client_owes_its_confirmation() -> None:
    root = Root()
    root.add(1)
    wave = root.start(owed=3)
    assert not root.echo(wave)
    root.released = 2
    assert not root.echo(wave)
    root.released = 3
    assert root.echo(wave)


def test_nothing_is_done_while_a_child_is_silent() -> None:
    root = Root()
    wave = root.start()
    assert root.waves.due_echo(lambda client: 0) is None
    root.waves.echoed("u", Echo(wave.number - 1, False, False))
    assert root.waves.due_echo(lambda client: 0) is None
    assert root.echo(wave)


def test_a_hand_over_voids_the_waves_that_its_members_have_seen() -> None:
    root = Root()
    root.add(1)
    wave = root.start()
    root.waves.void(7)
    assert not root.echo(wave)
    later = root.start()
    assert later == Wave(8, 0, 0, 0)
    assert not root.echo(Wave(7, 0, 0, 0))
    assert root.echo(later)
    assert len(root.log) == 1


def test_a_wave_that_was_seen_or_voided_does_not_begin() -> None:
    root = Root()
    assert root.waves.begin(Wave(3, 0, 0, 0), [], {})
    assert not root.waves.begin(Wave(3, 0, 0, 0), [], {})
    root.waves.void(5)
    assert not root.waves.begin(Wave(5, 0, 0, 3), [], {})
    assert root.forgotten == [0]


def test_a_leaf_echoes_at_once_and_tells_whether_anyone_below_it_is_busy() -> None:
    leaf = Root()
    leaf.waves.begin(Wave(1, 0, 0, 0), [], {})
    assert leaf.waves.due_echo(lambda client: 0) == Echo(1, False, False)
    assert leaf.waves.due_echo(lambda client: 0) is None
    leaf.add(1)
    leaf.waves.begin(Wave(2, 0, 0, 0), [], {})
    assert leaf.waves.due_echo(lambda client: 0) == Echo(2, True, False)
    inner = Root()
    inner.waves.begin(Wave(1, 0, 0, 0), ["u", "w"], {})
    inner.waves.echoed("u", Echo(1, True, False))
    inner.waves.echoed("w", Echo(1, False, False))
    assert inner.waves.due_echo(lambda client: 0) == Echo(1, True, False)


def ticks_until(tick: Callable[[], Wave | None]) -> int:
    return next(number for number in range(1, 10 * PATIENCE_MAX) if tick() is not None)


def test_the_root_starts_another_wave_when_no_echo_comes_and_grows_patient() -> None:
    root = Root()
    root.start()
    waits = []
    for _ in range(8):
        waits.append(ticks_until(root.waves.tick))
        root.waves.begin(Wave(root.waves.number + 1, 0, 0, 0), ["u"], {})
    assert waits[:3] == [PATIENCE_MIN, 2 * PATIENCE_MIN, 4 * PATIENCE_MIN]
    assert waits[-1] == PATIENCE_MAX


def test_the_pace_falls_when_nothing_is_kept_and_is_back_at_once_when_something_is() -> None:
    root = Root()
    waits = []
    for _ in range(7):
        waits.append(ticks_until(root.waves.tick))
        root.waves.begin(Wave(root.waves.number + 1, 0, 0, 0), ["u"], {})
        root.echo(Wave(root.waves.number, 0, 0, 0))
    assert waits == [1, 2, 4, 8, IDLE_MAX, IDLE_MAX, IDLE_MAX]
    root.add(1)
    assert ticks_until(root.waves.tick) == 1


def test_the_next_wave_follows_at_once_while_someone_is_pressed() -> None:
    root = Root()
    assert root.echo(root.start())
    assert root.next is None, "nobody is pressed"
    root.is_pressed = True
    root.echo(root.start())
    assert root.next == Wave(3, final=2, reached=0, done=1, interval=Interval(1, 2, {}))
    root.is_pressed = False
    assert root.waves.begin(Wave(3, 0, 0, 1), ["u"], {})
    root.waves.echoed("u", Echo(3, True, True))
    echo = root.waves.due_echo(lambda client: 0)
    assert echo == Echo(3, True, True, final=2)
    assert root.waves.completed(echo) == Wave(4, final=3, reached=1, done=2, interval=Interval(2, 3, {}))


def test_an_operator_can_see_whom_a_wave_waits_for() -> None:
    root = Root()
    assert root.waves.missing(lambda client: 0) == []
    wave = root.start(owed=3)
    assert root.waves.missing(lambda client: 2) == ["u", "c"]
    assert root.waves.missing(lambda client: 3) == ["u"]
    root.released = 3
    assert root.echo(wave)
    assert root.waves.missing(lambda client: 0) == []


def test_a_wave_is_echoed_only_when_the_backups_hold_what_was_stamped_before_it() -> None:
    leaf = Root()
    leaf.waves.begin(Wave(1, 0, 0, 0), [], {}, journalled=5)
    assert leaf.waves.due_echo(lambda client: 0, held=4) is None
    assert leaf.waves.due_echo(lambda client: 0, held=5) == Echo(1, False, False)


def test_the_number_of_a_wave_is_a_stamp_and_what_comes_after_it_is_larger() -> None:
    clock = Clock()
    clock.now = 1_000
    root = Waves(lambda wave: None, lambda done: None, lambda: True, lambda: False, clock, Shelf())
    wave = root.tick()
    assert wave is not None
    assert wave.number == 1_000
    other = Clock()
    leaf = Waves(lambda wave: None, lambda done: None, lambda: True, lambda: False, other, Shelf())
    leaf.begin(wave, [], {})
    assert other.next() == 1_001


def test_a_position_has_reached_everyone_when_the_wave_after_it_is_done() -> None:
    root = Root()
    for _ in range(3):
        assert root.echo(root.start())
    wave = root.start()
    assert (wave.final, wave.done, wave.reached) == (3, 2, 1)
    assert (root.waves.final, root.waves.reached) == (3, 1)


def test_positions_after_which_nothing_was_admitted_are_not_newer_than_the_last_event() -> None:
    root = Root()
    for _ in range(3):
        assert root.echo(root.start())
    assert (root.waves.final, root.waves.newest) == (3, 0), "nothing was ever admitted"
    wave = root.start()
    root.waves.echoed("u", Echo(wave.number, False, False, admitted={"u/0": {"p": [(1, 1)]}}))
    echo = root.waves.due_echo(lambda client: root.released)
    assert echo is not None
    root.waves.completed(echo)
    assert (root.waves.final, root.waves.newest) == (4, 4)
    for _ in range(3):
        assert root.echo(root.start())
    assert (root.waves.final, root.waves.newest) == (7, 4)
    assert root.waves.begin(Wave(20, final=15, reached=4, done=4, interval=None), [], {})
    assert root.waves.newest == 15, "what was admitted since 7 is not known here"


def test_what_came_before_a_wave_that_is_no_position_is_kept_until_everyone_knows_what_it_was() -> None:
    root = Root()
    root.add(1)
    wave = root.start()
    root.waves.echoed("u", Echo(wave.number, False, False, final=70))
    echo = root.waves.due_echo(lambda client: 0)
    assert echo is not None
    assert root.waves.completed(echo) is None
    assert root.waves.final == 70, "the child knew more than the new root"
    for _ in range(2):
        wave = root.start()
        assert (wave.done, len(root.log)) == (0, 1), "its interval is told with the second of these"
        root.echo(wave)
    root.start()
    assert len(root.log) == 0


def test_a_wave_is_completed_by_who_started_it() -> None:
    root = Root()
    wave = root.start()
    assert root.waves.is_own
    assert root.waves.begin(Wave(wave.number + 5, 0, 0, 0), [], {})
    assert not root.waves.is_own, "it came from above"
