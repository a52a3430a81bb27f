"""The load forecast's MC-dropout MLP in PyTorch: time of a training step, all draws stacked.

usage: mlp_torch.py BATCH DRAWS THREADS STEPS     prints the milliseconds of a step
"""

import sys
import time

import torch
from torch import nn

batch, draws, threads, steps = (int(argument) for argument in sys.argv[1:5])
torch.set_num_threads(threads)
network = nn.Sequential(
    nn.Linear(96, 128), nn.ReLU(), nn.Dropout(0.1),
    nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.1),
    nn.Linear(128, 24),
)
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
windows = torch.randn(170_000 + 120).unfold(0, 120, 1)
order = torch.randperm(windows.shape[0])


def step(index):
    rows = windows[order[(index * batch) % 160_000:][:batch]]
    optimizer.zero_grad()
    outputs = network(rows[:, :96].expand(draws, batch, 96))
    nn.functional.mse_loss(outputs.mean(0), rows[:, 96:]).backward()
    optimizer.step()


for index in range(50):
    step(index)
start = time.time()
for index in range(steps):
    step(50 + index)
print((time.time() - start) / steps * 1e3)
