"""A training step of the paper's Bayesian ViT in plain PyTorch, with KL and fused Adam.

usage: [torchrun --nproc-per-node N] vit_torch.py BATCH DRAWS THREADS STEPS [bf16] [compile]
prints the peak memory of a process in MiB and, last, the seconds of the best step
"""

import resource
import sys
import time

import torch
from bayesian_vit import RANK, BayesianViT

batch, draws, threads, steps = (int(argument) for argument in sys.argv[1:5])
torch.set_num_threads(threads)
vit = BayesianViT(45_000, sys.argv[5:])
torch.manual_seed(0)
images, labels = torch.randn(batch, 3, 32, 32), torch.arange(batch) % 10
torch.manual_seed(RANK)
times = []
for _ in range(steps + 2):  # The first two are slower: torch.compile, and memory that grows.
    start = time.perf_counter()
    vit.step(images, labels, draws)
    times.append(time.perf_counter() - start)
if RANK == 0:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(min(times[2:]))
