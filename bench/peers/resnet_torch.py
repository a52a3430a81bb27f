"""The residual network of `bayesmesh-models` in PyTorch: a training step of a point network with Adam.

usage: resnet_torch.py SIZE BATCH THREADS STEPS     prints the milliseconds of the best step, divided by its images:
with PyTorch's usual layout of images, and with `channels_last`
"""

import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "scripts"))
from resnet_torch_network import ResNet  # noqa: E402

size, batch, threads, steps = (int(argument) for argument in sys.argv[1:5])
torch.set_num_threads(threads)
labels = torch.arange(batch) % 3
for layout in torch.contiguous_format, torch.channels_last:
    network = ResNet(size, 3, 32, [2, 2, 2], 2, 8, 3).to(memory_format=layout)
    images = torch.rand(batch, 3, size, size).to(memory_format=layout)
    optimizer, times = torch.optim.Adam(network.parameters()), []
    for _ in range(steps + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(network(images), labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    print(layout, 1e3 * min(times[1:]) / batch)
