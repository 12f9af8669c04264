"""The rules that can be switched off. Without a rule, a stored schedule or run fails."""

from enum import Enum, auto


class Rule(Enum):
    """The rules; README.md explains each."""

    # membership
    PROMISE_FENCES = auto()  # an acceptor that has promised to exclude an incarnation accepts no more of its journal
    STORE_SEAL = auto()  # an exclusion takes effect when f + 1 have stored the sealed journal
    COUNT_CURRENT = auto()  # acks, promises and answers of superseded incarnations do not count
    RECOVER_FIRST = auto()  # an incarnation without memory reads the registers before it holds or votes
    ANNOUNCE_FIRST = auto()  # a joining incarnation contributes when majorities of its group's electorates know it
    SUSPECT_FIRST = auto()  # no acceptor promises before f + 1 have suspected
    PUSH_ON = auto()  # an acceptor that has promised and knows no decision proposes
    KEEP_CLOCK = auto()  # the register keeps a clock that is not below any position that was echoed
    KEEP_VIEW = auto()  # the register keeps the view
    REPLICATE_AGAIN = auto()  # a new incarnation of a replica gets the journal from the beginning
    # handover
    SEALS_FIRST = auto()  # a handover completes when it has the seal of every dead incarnation of its region
    SORT_UNION = auto()  # the union of logs and seals is processed in the order of timestamps
    SHARE_SEEN = auto()  # contributions carry the last number of each publisher
    FREEZE = auto()  # nothing is processed between the contribution and the completion
    UNSETTLE = auto()  # a member that is declared joined during a larger running handover is joining again
    VOID = auto()  # operations pending across the region start again
    # subscriptions and advertisements
    ACTIVE_REPRESENTS = auto()  # only an active subscription represents others on a link
    ADV_CARRIES_LAST = auto()  # an advertisement carries its publisher's last number
    FENCE_TELLS_LAST = auto()  # the new broker takes the publisher's last number from the fence
    BEGIN = auto()  # a resumed subscription counts publishers without a cut from its beginning
    BEGIN_CONFIRMED = auto()  # that beginning is the largest timestamp of a confirmed event, not the clock
    UNADV_RESTARTS = auto()  # a pending subscription that waits for an ended advertisement starts again
    # positions and fences
    SEAL_ROWS = auto()  # the first final position after a seal has all its rows, whatever their timestamps
    FENCE_SEEN = auto()  # a fence is not below the largest timestamp that the client has seen
    FENCE_FINAL = auto()  # the old incarnation's seal is in the final position, not only in the view
    READY_FIRST = auto()  # a client publishes after the fence holds
    RESUME_TOGETHER = auto()  # the subscriptions of a client resume with one read and one end position
