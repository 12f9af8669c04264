"""Rubbish, made with knowledge of what it should have been: `make fuzz`.

    make fuzz                                       every target in turn, ten minutes in all
    make fuzz ARGS="--minutes 5 --target frames"
    make fuzz ARGS="--inputs 100000 --seed 7"       the same inputs on every machine
    make fuzz ARGS="--again out/fuzz/frames-1f3a"   one input that was saved

A target is one door to the outside: it takes bytes and may refuse them with an error that has a sentence. Any other
exception, more than 100 ms of the processor's time, or memory that is not given back is a finding, which is saved with
the line that repeats it. Where `atheris` is installed (`pip install -e '.[fuzz]'`), `--guided` lets the coverage of the
code choose what is changed next; what it keeps is where later runs begin.
"""
