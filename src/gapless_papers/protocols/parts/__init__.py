"""What several of the papers' protocols are made of, once."""
