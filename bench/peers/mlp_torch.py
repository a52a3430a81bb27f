"""The load forecast's MC-dropout MLP in PyTorch: time of a training step, all draws stacked, with
fused Adam.

usage: mlp_torch.py BATCH DRAWS THREADS STEPS [bf16] [compile]
prints the milliseconds of a step
"""

import sys
import time

import torch
from mc_dropout_mlp import McDropoutMlp

batch, draws, threads, steps = (int(argument) for argument in sys.argv[1:5])
torch.set_num_threads(threads)
mlp = McDropoutMlp(sys.argv[5:])
windows = torch.randn(170_000 + 120).unfold(0, 120, 1)
order = torch.randperm(windows.shape[0])


def step(index):
    mlp.step(windows[order[(index * batch) % 160_000:][:batch]], draws)


for index in range(50):
    step(index)
start = time.perf_counter()
for index in range(steps):
    step(50 + index)
print((time.perf_counter() - start) / steps * 1e3)
