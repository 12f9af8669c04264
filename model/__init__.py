"""An executable specification of the recovery protocol: positions as fences, membership by majorities."""
