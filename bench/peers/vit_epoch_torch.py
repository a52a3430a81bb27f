"""A whole epoch of the paper's Bayesian ViT in PyTorch with its DataLoader: random crops and flips,
training steps, and accuracy and NLL of the mean over draws on other images.

usage: vit_epoch_torch.py FOLDER BATCH DRAWS THREADS WORKERS EPOCHS [bf16] [compile]
with the images that `bench/src/epoch_files.rs` writes to FOLDER, loaded by so many other processes
prints the seconds of the best epoch after a first one
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from bayesian_vit import BayesianViT
from torch.utils.data import DataLoader, Dataset

MEAN = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
STD = torch.tensor([0.2470, 0.2435, 0.2616]).view(3, 1, 1)
SIDE, PADDING = 32, 4


class Images(Dataset):
    """Images and labels, loaded a batch at a time, which is faster than one by one."""

    def __init__(self, folder, files, varied):
        records = np.concatenate([np.fromfile(folder / f"{file}.bin", np.uint8) for file in files])
        records = records.reshape(-1, 3073)
        self.images = torch.from_numpy(records[:, 1:].reshape(-1, 3, SIDE, SIDE))
        self.labels = torch.from_numpy(records[:, 0].astype(np.int64))
        self.padded = torch.nn.functional.pad(self.images, 4 * (PADDING,)) if varied else None

    def __len__(self):
        return len(self.images)

    def __getitems__(self, rows):
        rows = torch.tensor(rows)
        images = self.images[rows] if self.padded is None else self.vary(rows)
        return (images.float() / 255 - MEAN) / STD, self.labels[rows]

    def vary(self, rows):
        """A random part of each padded image, mirrored with probability one half."""
        down, right = torch.randint(0, 2 * PADDING + 1, (2, len(rows), 1))
        along = torch.arange(SIDE)
        across = torch.where(torch.rand(len(rows), 1) < 0.5, along.flip(0), along)
        y, x = (down + along)[:, None, :, None], (right + across)[:, None, None, :]
        return self.padded[rows[:, None, None, None], torch.arange(3)[:, None, None], y, x]


folder = Path(sys.argv[1])
batch, draws, threads, workers, epochs = (int(argument) for argument in sys.argv[2:7])
torch.set_num_threads(threads)
train = Images(folder, [f"data_batch_{number}" for number in (1, 2, 3, 4)], varied=True)
valid = Images(folder, ["test_batch"], varied=False)
options = dict(batch_size=batch, collate_fn=lambda examples: examples)
options |= dict(num_workers=workers, persistent_workers=workers > 0)
train_loader = DataLoader(train, shuffle=True, drop_last=True, **options)
valid_loader = DataLoader(valid, **options)
vit = BayesianViT(len(train), sys.argv[7:])


def epoch():
    for images, labels in train_loader:
        vit.step(images, labels, draws)
    right, nll = 0, 0.0
    for images, labels in valid_loader:
        p = vit.probabilities(images, draws)
        right += (p.argmax(1) == labels).sum().item()
        nll -= p[torch.arange(len(labels)), labels].log().sum().item()
    return right / len(valid), nll / len(valid)


times = []
for _ in range(epochs + 1):
    start = time.perf_counter()
    accuracy, nll = epoch()
    times.append(time.perf_counter() - start)
    print(f"accuracy {accuracy:.3f}, nll {nll:.3f}", file=sys.stderr)
print(min(times[1:]))
