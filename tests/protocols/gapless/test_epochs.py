"""Which of two sessions of one client is newer."""

from gapless.protocols.gapless.epochs import Epoch, attempt_of, epoch_of, inherited, kept, times_inherited


def test_an_epoch_says_in_which_attempt_it_began_and_how_often_it_was_inherited() -> None:
    epoch = inherited(inherited(epoch_of(3)))
    assert (attempt_of(epoch), times_inherited(epoch)) == (3, 2)


def test_a_session_that_was_kept_is_newer_than_what_an_heir_made_of_what_was_told() -> None:
    told = inherited(epoch_of(3))
    assert kept(epoch_of(3)) > inherited(told) > told > epoch_of(3)


def test_a_later_attempt_is_newer_than_all_that_heirs_made() -> None:
    assert epoch_of(4) > kept(Epoch(epoch_of(3) + 900))


def test_an_epoch_has_the_same_number_on_the_wire_and_on_disks_for_ever() -> None:
    assert (epoch_of(2), inherited(epoch_of(2)), kept(epoch_of(2))) == (2_000, 2_001, 2_003)
