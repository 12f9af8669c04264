"""What was admitted, kept to be read again from any position.

| rule | file |
| --- | --- |
| what was admitted between final positions | `index` |
| the events themselves, in runs, up to a number of bytes | `store`, `runs` |
| the same on the disk | `mirror` |
| history that lost a holder gets another one | `refill` |
| finding out what was admitted while this broker was out | `interval_search` |
| reading from those who hold it, merged by stamp | `retrieval` |
| what a broker does for readers, its own clients' and others' | `library` |
"""
