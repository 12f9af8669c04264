"""A broker logs each kind of event a bounded number of times, and then the number of omitted lines."""

import io
import logging

from gapless.runtime.log_limit import LINES_A_MINUTE, LimitedHandler, write_left_out
from gapless.runtime.logs import log_to


class Log:
    def __init__(self) -> None:
        self.now = 0.0
        self.stream = io.StringIO()
        self.handler = LimitedHandler(self.stream, lambda: self.now)
        self.handler.setFormatter(logging.Formatter("%(peer)s: %(message)s", defaults={"peer": "-"}))
        self.logger = logging.Logger("broker")
        self.logger.addHandler(self.handler)

    def suspect(self, client: int) -> None:
        self.logger.info("suspected", extra={"peer": f"client-{client}"})

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_a_thousand_suspicions_within_a_minute_are_some_lines_and_their_count() -> None:
    log = Log()
    for client in range(1_000):
        log.suspect(client)
        log.now += 0.05
    assert len(log.lines) == LINES_A_MINUTE
    log.now = 61.0
    write_left_out(log.logger)
    assert log.lines[-1] == "client-999: omitted 980 more lines like this within 61 s, the last: suspected"
    log.suspect(1_000)
    assert log.lines[-1] == "client-1000: suspected", "the next minute has its own lines"
    assert len(log.lines) == LINES_A_MINUTE + 2


def test_other_events_are_written_meanwhile() -> None:
    log = Log()
    for client in range(100):
        log.suspect(client)
    log.logger.warning("the data directory is unusable")
    assert log.lines[-1] == "-: the data directory is unusable"


def test_few_lines_are_written_as_ever() -> None:
    log = Log()
    for client in range(LINES_A_MINUTE):
        log.suspect(client)
    log.now = 100.0
    write_left_out(log.logger)
    assert log.lines == [f"client-{client}: suspected" for client in range(LINES_A_MINUTE)]


def test_omitted_log_lines_are_reported_when_the_process_ends() -> None:
    log = Log()
    for client in range(50):
        log.suspect(client)
    log.handler.close()
    assert log.lines[-1].startswith(f"client-49: omitted {50 - LINES_A_MINUTE} more lines like this within 0 s")


def test_the_reason_why_a_broker_ends_is_always_written() -> None:
    log = Log()
    for _ in range(50):
        log.logger.critical("shutting down, because the data directory is unusable")
    assert len(log.lines) == 50


def test_brokers_log_within_that_bound() -> None:
    stream, logger = io.StringIO(), logging.getLogger("gapless")
    before = logger.handlers, logger.level, logger.propagate
    try:
        log_to(stream)
        for client in range(100):
            logging.getLogger("gapless.broker").info("suspected", extra={"broker": "b0", "peer": f"client-{client}"})
    finally:
        logger.handlers, logger.level, logger.propagate = before
    assert len(stream.getvalue().splitlines()) == LINES_A_MINUTE
