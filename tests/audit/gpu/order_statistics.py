"""Intervals by the order of values, whatever their distribution."""
import math
import statistics


def of_median(values):
    """The median, and an interval of 95 % for it of the order statistics; of fewer than six, the range."""
    ordered, below, place = sorted(values), 0, 0
    # Of how many the least are below the median in all but one of 40 samples.
    while (below := below + math.comb(len(ordered), place)) <= 2 ** len(ordered) / 40:
        place += 1
    return statistics.median(ordered), ordered[max(place, 1) - 1], ordered[-max(place, 1)]
