"""The quick start in the installed kernel, with each processor busy. What it says has to be true each time.

Argument: how often.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

from jupyter_client.manager import start_new_kernel

LAB = pathlib.Path(__file__).parents[2] / "notebooks/00-quick-start.ipynb"


def outputs(client, code):
    """What a cell prints and shows, as text; a cell that fails ends the program."""
    texts = []

    def hook(message):
        content = message["content"]
        texts.append(content.get("text") or content.get("data", {}).get("text/plain", ""))

    reply = client.execute_interactive(code, timeout=600, stop_on_error=False, output_hook=hook)["content"]
    assert reply["status"] == "ok", (code, reply)
    return "\n".join(texts)


def main(rounds):
    cells = [cell for cell in json.loads(LAB.read_text())["cells"] if cell["cell_type"] == "code"]
    cells = ["".join(cell["source"]) for cell in cells if not cell["metadata"].get("nbgrader")]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    manager, client = start_new_kernel(kernel_name="syncscope", startup_timeout=300, cwd=str(LAB.parent))
    dispatches, reads, verdicts = [], [], []
    try:
        for _ in range(rounds):
            said = "\n".join(outputs(client, cell) for cell in cells)
            # "`matmul` returns at once", and "`item` blocks the host".
            dispatch, state = re.search(r"matmul returned after (\d+) µs; its work was (\w+)", said).groups()
            read = re.search(r"item   returned (\d+) µs after the gate opened", said).group(1)
            assert state == "pending", said
            # "The host launches five matmuls and the sum of the last result. Then it reads the sum."
            calls = re.search(r"host, [^:]*: ([^.]*)", said).group(1)
            launched = sum(int(times or 1) for times in re.findall(r"(?:(\d+) × )?matmul \(enqueue\)", calls))
            assert launched == 5 and calls.index("sum (enqueue)") < calls.index("item (synchronize)"), said
            assert re.search(r"1\. item +implicit", said) and "\n1 synchronization point." in said, said
            # "Noise leads to inconclusive and never to a random verdict."
            verdict = re.search(r"Verdict: (\w+)", said).group(1)
            assert verdict in ("confirmed", "inconclusive"), said
            dispatches.append(int(dispatch))
            reads.append(int(read))
            verdicts.append(verdict)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        for loop in busy:
            loop.kill()
    print(f"true in {rounds} of {rounds} runs: matmul returned after {min(dispatches)} to {max(dispatches)} µs with its work")
    print(f"pending, item {min(reads)} to {max(reads)} µs after the gate; verdicts: {', '.join(sorted(verdicts))}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
