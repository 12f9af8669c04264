"""The papers whose measurements are repeated: their names and sources."""

from collections.abc import Mapping

import msgspec

__all__ = ["PAPERS", "Paper"]


class Paper(msgspec.Struct, frozen=True):
    """One paper."""

    name: str
    """A short description of the paper's system."""
    source: str
    """Title and authors, as given in our copy of the paper."""
    section: str
    """The section with the measurements."""
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
"""The papers by the name that experiment files use."""
