"""Parts that several of the papers' protocols share."""
