"""Who lives, and who is next to whom.

| rule | file |
| --- | --- |
| what is known of a broker's life, in one number that only grows | `status` |
| who suspects whom, who is excluded, who stands in | `membership` |
| the tree without the excluded, and the regions that have to be handed over | `contraction` |
| who is told what of whom | `news` |
"""
