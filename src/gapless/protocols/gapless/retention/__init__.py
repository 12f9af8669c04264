"""What is kept, for whom, and for how long.

| rule | file |
| --- | --- |
| what must outlive a broker, copied to f backups | `journal` |
| what a broker has processed, for the next hand-over | `event_log` |
| numbers that come and go in order | `spans` |
| what has reached everyone, and may be forgotten | `waves` |
| when it had | `milestones` |
"""
