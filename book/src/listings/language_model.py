"""Trains a small language model as it is commonly written: a loader, mixed precision, gradients that are clipped, a log.

    python language_model.py [MENDED ...]     MENDED: loader, log, optimizer

Each name takes one thing out that leaves the GPU idle. Prints the milliseconds of an iteration.
"""
import random
import sys
import time

import torch
import torch.nn.functional as F

MENDED = set(sys.argv[1:])
ITERATIONS, WARM = 120, 20
CONTEXT, BATCH, WIDTH, HEADS, LAYERS = 256, 16, 512, 8, 8
WORDS = [f"word{number}" for number in range(5_000)]


class Text(torch.utils.data.Dataset):
    """Lines of text, which are split and numbered word by word."""

    def __init__(self):
        chosen = random.Random(0)
        self.lines = [" ".join(chosen.choices(WORDS, k=CONTEXT + 1)) for _ in range(512)]
        self.numbers = {word: number for number, word in enumerate(WORDS)}

    def __len__(self):
        return (ITERATIONS + WARM) * BATCH

    def __getitem__(self, index):
        line = self.lines[index % len(self.lines)]
        numbers = []
        for _ in range(8):
            numbers = [self.numbers[word] for word in line.split()]
        return torch.tensor(numbers)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.parts, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide, self.back = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        split = self.parts(self.first(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.back(F.gelu(self.wide(self.second(x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(len(WORDS), WIDTH), torch.nn.Embedding(CONTEXT, WIDTH)
        self.blocks = torch.nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.last, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, len(WORDS))

    def forward(self, numbers):
        x = self.words(numbers) + self.places(torch.arange(numbers.shape[1], device=numbers.device))
        return self.head(self.last(self.blocks(x)))


def main():
    torch.manual_seed(0)
    ahead = {"num_workers": 6, "pin_memory": True, "prefetch_factor": 4} if "loader" in MENDED else {}
    batches = torch.utils.data.DataLoader(Text(), batch_size=BATCH, **ahead)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach="optimizer" in MENDED)
    scaler = torch.amp.GradScaler("cuda")
    log, losses = [], []
    begun = 0.0
    for number, batch in enumerate(batches):
        if number == WARM:
            torch.cuda.synchronize()
            begun = time.perf_counter()
        batch = batch.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            scores = model(batch[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach="optimizer" in MENDED)
        scaler.step(optimizer)
        scaler.update()
        if "log" in MENDED:
            losses.append(loss.detach())
        else:
            log.append(f"step {number}: {loss.item():.3f}")
    torch.cuda.synchronize()
    print(f"{(time.perf_counter() - begun) / ITERATIONS * 1e3:.3f}")
    log.extend(f"{loss:.3f}" for loss in (torch.stack(losses).tolist() if losses else []))


if __name__ == "__main__":
    main()
