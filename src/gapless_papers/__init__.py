"""The research beside the product: the protocols of four papers, and the laboratory that reproduces what they measured.

`gapless` imports nothing of this. It finds the protocols and the command `gapless lab` by entry points (see
`pyproject.toml`), and loads one when its name is typed. `pip install 'gapless[papers]'` brings what is needed beside.
"""
