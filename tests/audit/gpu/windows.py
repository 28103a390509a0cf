"""Windows of a training that runs armed, one after the other: `windows.py REPORT SECONDS`. Each has the program's calls, the device's
work and iterations, and the program goes on as if there had been none. Ends with how many had what.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.abspath(__file__)


def train(seconds):
    import torch

    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(512, 1024, device="cuda")
    end = time.monotonic() + seconds
    print("steady", flush=True)
    step = 0
    while time.monotonic() < end:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            loss.item()
        step += 1
    torch.cuda.synchronize()
    print("whole", flush=True)


def main(report, seconds):
    found = {"windows": 0, "without calls": 0, "without work": 0, "without iterations": 0}
    command = [report, "audit", "--armed", "--", sys.executable, "-B", HERE, str(seconds)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    # The last window ends before the program does.
    end = time.monotonic() + seconds - 3
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "audit.json")
        while time.monotonic() < end and program.poll() is None:
            now = [report, "audit", "now", str(program.pid), "--for", "350ms", "--json", file]
            said = subprocess.run(now, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
            audit = json.load(open(file))
            found["windows"] += 1
            found["without calls"] += sum(process["calls"] for process in audit["processes"]) == 0
            found["without work"] += not any(process["devices"] for process in audit["processes"])
            found["without iterations"] += not any(process.get("steady") for process in audit["processes"])
            if said or audit["warnings"]:
                print(f"window {found['windows']}: {said}{'; '.join(audit['warnings'])}")
    is_whole = "whole" in program.stdout.read() and program.wait() == 0
    print(*(f"{count} {what}" for what, count in found.items()), "the program went on" if is_whole else "THE PROGRAM BROKE", sep=", ")
    return is_whole and found["windows"] > 0 and not any(count for what, count in found.items() if what != "windows")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        train(float(sys.argv[1]))
    else:
        sys.exit(0 if main(sys.argv[1], float(sys.argv[2])) else 1)
