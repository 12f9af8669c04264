"""Protocols from four papers, and the laboratory that reproduces the measurements of those papers.

`gapless` never imports this package. It finds the protocols and the command `gapless lab` through entry points (see
`pyproject.toml`) and loads one when its name is used. `pip install 'gapless[papers]'` installs the extra dependencies.
"""
