"""Finds out which calls wait: each is made while a gate holds the stream.

    python labels.py LABELS.json
"""
import json
import statistics
import sys


def main():
    import torch

    from calls import CALLS, Values, line
    from gate import Gate

    torch.cuda.init()
    with torch.cuda.stream(torch.cuda.Stream()):
        values, gate, labels = Values(), Gate(), {}
        for name, call in CALLS:
            waited = gate.trials(call, values)
            labels[str(line(call))] = {"name": name, "waits": statistics.mode(waited), "trials": waited}
        gate.end()
    with open(sys.argv[1], "w") as file:
        json.dump(labels, file, indent=1)


main()
