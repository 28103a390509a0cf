"""A training loop in which the host waits at five places that do not look like it."""
import torch
from torch import nn

STEPS, BATCH, WIDTH, CLASSES = 200, 2560, 4096, 10
device = torch.device("cuda")
hidden = [layer for _ in range(3) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
model = nn.Sequential(*hidden, nn.Linear(WIDTH, CLASSES)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = [
    (torch.randn(BATCH, WIDTH), torch.randint(CLASSES, (BATCH,)).pin_memory())
    for _ in range(16)
]


def prepare(images, labels):
    images = images.to(device, non_blocking=True)
    labels = labels.to(device, non_blocking=True)
    return images * 0.5 + 2.0, labels


def loss_of(images, labels):
    scores = model(images)
    weights = torch.tensor([1.0] * CLASSES, device=device)
    both = scores.detach() + model(images.flip(1)).detach()
    hard = (both.softmax(dim=1).amax(dim=1) < 0.9).nonzero()[:, 0]
    return nn.functional.cross_entropy(scores[hard], labels[hard], weights, reduction="sum") / BATCH


def step(images, labels):
    optimizer.zero_grad()
    loss = loss_of(*prepare(images, labels))
    loss.backward()
    if torch.isfinite(loss):
        optimizer.step()
    return loss.detach()


total = torch.zeros((), device=device)
for number in range(STEPS):
    loss = step(*batches[number % len(batches)])
    total += loss
    progress = f"step {number}: loss {loss:.3f}"
    if number % 50 == 0:
        print(progress)
print("mean", (total / STEPS).item())
