"""PyTorch as a second system under test: it measures the rows of a plan and writes an answer. See `../pytorch.py`."""
