"""Standard normal numbers in PyTorch on one core, into a buffer that is used again.

usage: normals_torch.py     prints the milliseconds of ten million, the best of twenty
"""

import time

import torch

torch.set_num_threads(1)
numbers = torch.empty(10_000_000)


def fill():
    start = time.time()
    numbers.normal_()
    return (time.time() - start) * 1e3


print(min(fill() for _ in range(20)))
