"""The papers whose figures are measured again: what they are called, and where they can be read."""

from collections.abc import Mapping

import msgspec

__all__ = ["PAPERS", "Paper"]


class Paper(msgspec.Struct, frozen=True):
    """One paper."""

    name: str
    """What its system is, in a few words."""
    source: str
    """Title and authors, as far as the paper at hand gives them."""
    section: str
    """Where it measures."""
    link: str = ""


PAPERS: Mapping[str, Paper] = {
    "001": Paper(
        "LoCaPS: localized causal publish-subscribe",
        "Filipa Pedrosa: LoCaPS: Localized Causal Publish-Subscribe. Instituto Superior Técnico",
        "section VII",
        "https://www.gsd.inesc-id.pt/~ler/students/filipapedrosamsc.html",
    ),
    "002": Paper(
        "VCube-PS: causal broadcast per topic over a virtual hypercube",
        "J. P. de Araujo, L. Arantes, E. P. Duarte Jr., L. A. Rodrigues, P. Sens: A Publish/Subscribe System Using "
        "Causal Broadcast Over Dynamically Built Spanning Trees",
        "section IV",
        "https://arxiv.org/abs/1706.08302",
    ),
    "003": Paper(
        "Delta: publish/subscribe that bypasses δ failed neighbours",
        "R. S. Kazemzadeh, H.-A. Jacobsen: Partition-Tolerant Distributed Publish/Subscribe Systems. SRDS 2011, in a "
        "longer version",
        "section IX",
        "https://doi.org/10.1109/SRDS.2011.21",
    ),
    "004": Paper(
        "Reliability by epidemic algorithms",
        "P. Costa, M. Migliavacca, G. P. Picco, G. Cugola: Introducing Reliability in Content-Based Publish-Subscribe "
        "through Epidemic Algorithms. DEBS 2003",
        "section 5",
        "https://hdl.handle.net/11311/500861",
    ),
}
"""By the name in an experiment's file."""
