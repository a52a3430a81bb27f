"""A whole epoch of the load forecast's MC-dropout MLP in PyTorch with its DataLoader: training
steps, and the RMSE of the mean over draws on later windows.

usage: mlp_epoch_torch.py FILE BATCH DRAWS THREADS WORKERS EPOCHS [bf16] [compile]
with the load that `bench/src/epoch_files.rs` writes to FILE, loaded by so many other processes
prints the seconds of the best epoch after a first one
"""

import sys
import time

import torch
from mc_dropout_mlp import McDropoutMlp
from torch.utils.data import DataLoader, Dataset

LENGTH, TRAINING = 120, 64_000


class Windows(Dataset):
    """All windows of a series, loaded a batch at a time, which is faster than one by one."""

    def __init__(self, series):
        self.windows = series.unfold(0, LENGTH, 1)

    def __len__(self):
        return len(self.windows)

    def __getitems__(self, rows):
        return self.windows[torch.tensor(rows)]


series = torch.frombuffer(bytearray(open(sys.argv[1], "rb").read()), dtype=torch.float32)
batch, draws, threads, workers, epochs = (int(argument) for argument in sys.argv[2:7])
torch.set_num_threads(threads)
first = TRAINING + LENGTH - 1
train, valid = Windows(series[:first]), Windows(series[first:])
options = dict(batch_size=batch, collate_fn=lambda examples: examples)
options |= dict(num_workers=workers, persistent_workers=workers > 0)
train_loader = DataLoader(train, shuffle=True, drop_last=True, **options)
valid_loader = DataLoader(valid, **options)
mlp = McDropoutMlp(sys.argv[7:])


def epoch():
    for windows in train_loader:
        mlp.step(windows, draws)
    error = sum(mlp.squared_error(windows, draws).item() for windows in valid_loader)
    return (error / (len(valid) * 24)) ** 0.5


times = []
for _ in range(epochs + 1):
    start = time.perf_counter()
    rmse = epoch()
    times.append(time.perf_counter() - start)
    print(f"rmse {rmse:.4f}", file=sys.stderr)
print(min(times[1:]))
