"""The paper's ViT in plain PyTorch with weights sampled by hand, draw after draw: forward and
backward passes only, without KL and optimiser. The fastest that is fair.

usage: vit_torch.py BATCH DRAWS THREADS STEPS     prints the seconds of the best step, last
"""

import sys
import time

import torch
import torch.nn.functional as F

batch, draws, threads, steps = (int(argument) for argument in sys.argv[1:5])
torch.set_num_threads(threads)
WIDTH, HEADS, DEPTH, TOKENS, PIXELS = 192, 3, 6, 64, 48
block = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
sizes = [(PIXELS, WIDTH)] + DEPTH * block + [(WIDTH, 10)]
means = [(torch.randn(o, i) / i**0.5).requires_grad_() for i, o in sizes]
log_stds = [torch.full((o, i), -5.0).requires_grad_() for i, o in sizes]
biases = [torch.zeros(o, requires_grad=True) for _, o in sizes]
patches = torch.rand(batch, TOKENS, PIXELS)
labels = torch.arange(batch) % 10


def draw():
    weights = [m + s.exp() * torch.randn_like(m) for m, s in zip(means, log_stds)]
    layers = iter(zip(weights, biases))
    x = F.linear(patches, *next(layers))
    for _ in range(DEPTH):
        packed = F.linear(F.layer_norm(x, (WIDTH,)), *next(layers))
        q, k, v = packed.reshape(batch, TOKENS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + F.linear(mixed.reshape(batch, TOKENS, WIDTH), *next(layers))
        hidden = F.gelu(F.linear(F.layer_norm(x, (WIDTH,)), *next(layers)))
        x = x + F.linear(hidden, *next(layers))
    logits = F.linear(F.layer_norm(x, (WIDTH,)).mean(1), *next(layers))
    F.cross_entropy(logits, labels).backward()


times = []
for _ in range(steps + 1):
    start = time.perf_counter()
    for _ in range(draws):
        draw()
    times.append(time.perf_counter() - start)
print(min(times[1:]))
