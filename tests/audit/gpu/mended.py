"""Whether the training of the small language model gains what its audit says, where one thing is mended: a table.

    python mended.py AUDIT.json

The loop runs as it is and mended, alternately, in this process. What the audit says of a line is taken as a part of the iteration
that was audited. For lines at which launches take the time, it says how long an iteration would take at best.
"""
import contextlib
import io
import json
import os
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../book/src/listings"))
import language_model

ROUNDS = 5
# What is mended, and a part of each line that it mends.
MENDED = {
    "": [],
    "loader": ["self.numbers[word] for word"],
    "optimizer": ["clip_grad_norm_", "scaler.step("],
    "loader optimizer": [],
}


def lines(parts):
    source = open(language_model.__file__, encoding="utf-8").read().splitlines()
    return [number for number, text in enumerate(source, 1) if any(part in text for part in parts)]


def run(mended):
    """Milliseconds of an iteration."""
    language_model.MENDED = set(mended.split())
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        language_model.main()
    return float(said.getvalue())


def main(file):
    audit = json.load(open(file, encoding="utf-8"))
    steady = [process for process in audit["processes"] if process.get("steady")]
    audited = sum(process["wall_ns"] for process in steady) / sum(process["steady"]["iterations"] for process in steady)
    taken = {mended: [] for mended in MENDED}
    run("")
    for _ in range(ROUNDS):
        for mended in MENDED:
            taken[mended].append(run(mended))
    before, holds = statistics.median(taken[""]), True
    print(f"{'mended':18} {'ms':>6} {'range':>16}  told")
    for mended, parts in MENDED.items():
        own = taken[mended]
        told = [place for place in audit["idle"] if place.get("without_ns")
                and any(place["place"].endswith(f"language_model.py:{line}") for line in lines(parts))]
        words = "" if not parts else "nothing"
        if told:
            # Each line alone: what all bring together is not told.
            least = before * (1 - sum(1 - place["without_ns"][0] / audited for place in told))
            most = before * min(place["without_ns"][1] / audited for place in told)
            is_bound = any(place["cause"] == "launch" for place in told)
            words = f"at best {least:.1f}" if is_bound else f"{least:.1f} to {most:.1f}"
            holds &= least <= max(own) and (is_bound or min(own) <= most)
        holds &= bool(told) or not parts
        print(f"{mended or 'as it is':18} {statistics.median(own):6.1f} {min(own):7.1f} to {max(own):5.1f}  {words}")
    return holds


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1]) else 1)
