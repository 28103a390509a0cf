import torch
from torch.utils.data import DataLoader, TensorDataset

cuda = "cuda"
x, y = torch.randn(65_536, device=cuda), torch.randn(65_536, device=cuda)
mask = x > 0
host_rows = torch.tensor([2, 0, 1])
device_rows = host_rows.to(cuda)
counts = torch.ones(65_536, device=cuda, dtype=torch.int64)
small, large = torch.ones(65_536), torch.ones(10_000_000)
pinned = small.pin_memory()
event, other = torch.cuda.Event(), torch.cuda.Stream()
loader = DataLoader(TensorDataset(torch.ones(64, 1024)), batch_size=16, pin_memory=True)


def parameters():
    made = [torch.nn.Parameter(torch.randn(256, 256, device=cuda)) for _ in range(4)]
    for parameter in made:
        parameter.grad = torch.ones_like(parameter)
    return made


trained = parameters()
adam = torch.optim.Adam(parameters())
capturable = torch.optim.Adam(parameters(), capturable=True)
sgd, scaler = torch.optim.SGD(parameters(), lr=0.01), torch.amp.GradScaler(cuda)
scaler.scale(torch.ones(1, device=cuda))


def assign_scalar():
    x[mask] = 0.0


def assign_tensor():
    x[mask] = y[mask]


def del_large():
    made = torch.empty(10_000_000, device=cuda)
    del made


def event_synchronize():
    event.record()
    event.synchronize()


def scaler_step():
    scaler.step(sgd)
    scaler.update()


CALLS = {
    "item": lambda: x[7].item(),
    "tolist": lambda: x[:8].tolist(),
    "cpu": lambda: x.cpu(),
    "cpu-numpy": lambda: x.cpu().numpy(),
    "print": lambda: print(x[7]),
    "any-in-if": lambda: 1 if mask.any() else 0,
    "nonzero": lambda: torch.nonzero(x),
    "masked-select": lambda: torch.masked_select(x, mask),
    "boolean-index": lambda: x[mask],
    "boolean-assign-scalar": assign_scalar,
    "boolean-assign-tensor": assign_tensor,
    "unique": lambda: torch.unique(device_rows),
    "where-one": lambda: torch.where(mask),
    "where-three": lambda: torch.where(mask, x, y),
    "index-by-host-tensor": lambda: x[host_rows],
    "index-by-device-tensor": lambda: x[device_rows],
    "tensor-on-device": lambda: torch.tensor([1.0] * 16, device=cuda),
    "to-device-pageable": lambda: small.to(cuda),
    "to-device-pageable-non-blocking": lambda: small.to(cuda, non_blocking=True),
    "to-device-pageable-large-non-blocking": lambda: large.to(cuda, non_blocking=True),
    "to-device-pinned": lambda: pinned.to(cuda),
    "to-device-pinned-non-blocking": lambda: pinned.to(cuda, non_blocking=True),
    "to-host-non-blocking": lambda: x.to("cpu", non_blocking=True),
    "repeat-interleave": lambda: torch.repeat_interleave(x, counts),
    "repeat-interleave-sized": lambda: torch.repeat_interleave(x, counts, output_size=65_536),
    "multinomial": lambda: torch.multinomial(torch.ones(65_536, device=cuda), 16),
    "empty-cache": torch.cuda.empty_cache,
    "del-large": del_large,
    "event-synchronize": event_synchronize,
    "wait-stream": lambda: other.wait_stream(torch.cuda.current_stream()),
    "dataloader-pin-memory": lambda: next(iter(loader)),
    "grad-scaler-step": scaler_step,
    "clip-grad-norm": lambda: torch.nn.utils.clip_grad_norm_(trained, 1.0),
    "adam-step": adam.step,
    "adam-step-capturable": capturable.step,
    "sum": lambda: x.sum(),
}

for call in CALLS.values():
    call()
