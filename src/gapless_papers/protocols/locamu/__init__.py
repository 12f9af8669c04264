"""LoCaMu: the causal multicast that LoCaPS uses, over f + 1 paths, as far as its paper describes it.

*Localized Reliable Causal Multicast* (Santos and Rodrigues, 2019) itself is not among our papers. From the LoCaPS paper
we know that it keeps causal order in a network of brokers, survives f failures in each neighbourhood by links that
bypass f brokers, and keeps metadata about the neighbourhood only. This package provides the order and the fault
tolerance: `regions` determines where messages go, `multicast` the order in which they are processed. It is independent
of the messages' contents.

It lacks the property that gave LoCaMu its name: a message here can name any messages in transit to any broker, not only
those of the neighbourhood. So the size of its metadata grows with the number of messages in transit in the whole
network.
"""
