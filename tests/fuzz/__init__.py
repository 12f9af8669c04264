"""Structured malformed input for every parser of outside data: `make fuzz`.

    make fuzz                                       every target in turn, ten minutes in all
    make fuzz ARGS="--minutes 5 --target frames"
    make fuzz ARGS="--inputs 100000 --seed 7"       the same inputs on every machine
    make fuzz ARGS="--again out/fuzz/frames-1f3a"   one input that was saved

A target is one entry point for data from outside: it takes bytes and can refuse them with a clear error. Any other
exception, more than 100 ms of processor time, or memory that is not released is a finding, which is saved together with
the command that repeats it. With `atheris` (`pip install -e '.[fuzz]'`), `--guided` uses code coverage to choose the
next change; interesting inputs are kept as the start of later runs.
"""
