"""Programs that put the whole to the test for as long as one has patience: chaos on a real network, and its talk in the
simulator. The tests run a little of each."""
