"""LoCaMu: the causal multicast that LoCaPS stands on, over f + 1 paths, as far as its paper describes it.

*Localized Reliable Causal Multicast* (Santos and Rodrigues, 2019) itself is not among our papers. What is known of it:
it keeps causal order in a network of brokers, survives f failures in each neighbourhood by links that bypass f brokers,
and keeps metadata about the neighbourhood only. This part keeps the promises of order and of failures; `regions` says
where messages go, `multicast` in which order they are processed. It does not know what the messages are about.

What it does not have is the property that gave LoCaMu its name: a message here may name whatever is on its way to
any broker, and not only what concerns the neighbourhood. So what it carries grows with what is under way in the whole
network.
"""
