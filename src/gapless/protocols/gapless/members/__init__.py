"""Who lives, and who is next to whom.

| rule | file |
| --- | --- |
| what is known of a broker's life, in one number that only grows | `status` |
| who suspects whom, who is excluded, who stands in | `membership` |
| the tree without the excluded, and the regions that have to be handed over | `contraction` |
| who is told what of whom | `news` |
| how many must have lost sight of a broker, where brokers wait in a cut | `quorum` |
| how long a broker stays away that is excluded again and again | `resting` |
"""
