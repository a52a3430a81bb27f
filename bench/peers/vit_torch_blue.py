"""The paper's Bayesian ViT in torch_blue: a training step with sampling, KL and Adam.

usage: vit_torch_blue.py BATCH DRAWS THREADS STEPS [bf16]
prints the peak memory of a process in MiB and, last, the seconds of the best step; with `bf16` the
network runs under autocast. Under
`torchrun --nproc-per-node N` it is sampling parallelism as the paper does it: the same batch and
DRAWS/N draws on every rank, gradients averaged by DistributedDataParallel over gloo.
"""

import os
import resource
import sys
import time

import torch
from torch import nn
from torch_blue import vi
from torch_blue.vi.distributions import Categorical

batch, draws, threads, steps = (int(argument) for argument in sys.argv[1:5])
bf16 = "bf16" in sys.argv[5:]
torch.set_num_threads(threads)
world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
WIDTH, HEADS, DEPTH, PATCH = 192, 3, 6, 4


class ViT(vi.VIModule):
    def __init__(self):
        super().__init__()
        self.embed = vi.VILinear(3 * PATCH * PATCH, WIDTH)
        self.layers = nn.ModuleList(
            vi.VITransformerEncoderLayer(
                WIDTH, HEADS, 4 * WIDTH, activation=nn.GELU(), batch_first=True, norm_first=True
            )
            for _ in range(DEPTH)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.head = vi.VILinear(WIDTH, 10)
        self.register_buffer("places", torch.randn(1, 64, WIDTH))

    def forward(self, images):
        tiles = images.reshape(-1, 3, 8, PATCH, 8, PATCH).permute(0, 2, 4, 3, 5, 1)
        x = self.embed(tiles.reshape(-1, 64, 3 * PATCH * PATCH)) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


torch.manual_seed(rank)
model = ViT()
network = model
if world > 1:
    torch.distributed.init_process_group("gloo")
    network = nn.parallel.DistributedDataParallel(model)
loss = vi.KullbackLeiblerLoss(Categorical(), dataset_size=45_000)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
images, labels = torch.randn(batch, 3, 32, 32), torch.arange(batch) % 10
times = []
for _ in range(steps + 1):
    start = time.perf_counter()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        logits = network(images, samples=draws // world)
    loss(logits.float(), labels).backward()
    optimizer.step()
    times.append(time.perf_counter() - start)
if rank == 0:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(min(times[1:]))
