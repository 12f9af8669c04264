"""Going round the dead, and back.

A hand-over replaces a region of the tree. `handover` explains it; read it first.

| rule | file |
| --- | --- |
| when one begins, is dropped, is complete; who is settled | `handovers` |
| what one is, and how estates are divided | `handover` |
| what a member tells the others | `contribution` |
| what the contributions come to, before anything is changed | `plan` |
| one order out of several logs | `merge` |
| cuts that were on their way to somebody who died | `inference`, `starting_cut` |
| what nobody holds any more | `holes` |
| what comes back with those that the others went round | `gone_round` |
| the plan carried out, step by step | `takeover` |
| filters, each read once | `patterns` |
| copies of others' journals, and where their clients went | `estates` |
| what a life puts on its disk; what a broker finds there when it starts | `persistence`, `found` |
| the parts of a broker that all of these work on | `state` |
"""
