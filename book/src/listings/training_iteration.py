"""An iteration of a training loop as it is commonly written.

The lines with a number wait for the GPU. Those up to the number
`removed` are written in another way.
"""
import torch
import torch.nn.functional as F


def iteration(loop, number, removed):
    prepared = loop.prepare(number)
    if removed < 6:
        x = prepared.cuda()  # 6
    else:
        x = prepared.to("cuda", non_blocking=True)
    if removed < 7:
        scale = torch.tensor([1.0, 0.5], device="cuda")  # 7
    else:
        scale = loop.scale
    out = loop.model(x)
    losses = F.cross_entropy(out, loop.labels, reduction="none") * scale[0]
    if removed < 5:
        loss = losses[loop.mask].mean()  # 5
    else:
        loss = (losses * loop.mask).sum() / loop.count
    loop.optimizer.zero_grad()
    loss.backward()
    loop.optimizer.step()
    if removed < 2:
        if torch.isnan(loss):  # 2
            raise ValueError("the loss is no number")
    else:
        loop.is_bad |= torch.isnan(loss.detach())
    right = (out.argmax(1) == loop.labels).sum()
    if removed < 3:
        loop.right += right.item()  # 3
    else:
        loop.right_there += right
    if removed < 4:
        loop.total += loss.item()  # 4
    else:
        loop.total_there += loss.detach()
    if removed < 1:
        torch.cuda.synchronize()  # 1
