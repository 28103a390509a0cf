"""Finds out which calls wait: each is made while a gate holds the stream.

    python labels.py LABELS.json
"""
import json
import statistics
import sys
import time


def main():
    import torch

    from calls import CALLS, Values, line
    from gate import Gate

    torch.cuda.init()
    with torch.cuda.stream(torch.cuda.Stream()):
        values, gate, labels = Values(), Gate(), {}
        for name, call in CALLS:
            call(values)
            call(values)
            waited = []
            for _ in range(3):
                torch.cuda.synchronize()
                values.prepare()
                torch.cuda.synchronize()
                gate.hold(torch.cuda.current_stream().cuda_stream)
                values.pending()
                call(values)
                waited.append(gate.is_open())
                while not gate.is_open():
                    time.sleep(0.001)
                torch.cuda.synchronize()
            labels[str(line(call))] = {"name": name, "waits": statistics.mode(waited), "trials": waited}
        gate.end()
    with open(sys.argv[1], "w") as file:
        json.dump(labels, file, indent=1)


main()
