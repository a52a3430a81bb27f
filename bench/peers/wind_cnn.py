"""A plain periodic CNN on 6-hourly wind in PyTorch, beside which `gfs-wind` is judged: RMSE of its forecast, and the
CRPS of the forecast dressed with its own errors on the validation part.

usage: wind_cnn.py STORE [EPOCHS] [WIDTH]     STORE in WeatherBench2's layout; needs PyPI torch, numpy and zarr

The first 70 % of the steps are learned from, the next 10 % give the errors, the last 20 % are the test; steps with
missing values are left out. A dressed forecast is its value plus errors of validation, as many as there are. Three ways
to choose them are scored, for a rival should not lose by a bad dress: errors of the whole globe, of the same latitude
and its two neighbours on either side, and of the same cell.
"""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import zarr

NAMES = ["10m_u_component_of_wind", "10m_v_component_of_wind"]
store, epochs, width = sys.argv[1], int((sys.argv[2:3] or [20])[0]), int((sys.argv[3:4] or [24])[0])
torch.manual_seed(0)
group = zarr.open_group(store, mode="r")
fields = np.stack([group[name][:] for name in NAMES], 1)  # time, variable, longitude, latitude
fields = torch.tensor(fields).transpose(2, 3)
count = len(fields)

latitude = torch.linspace(-90, 90, fields.shape[2])
middle = (latitude[1:] + latitude[:-1]) / 2
edges = torch.cat([torch.tensor([-90.0]), middle, torch.tensor([90.0])]).deg2rad().sin()
area = edges[1:] - edges[:-1]
area = (area / area.mean()).view(1, -1, 1)

whole = ~torch.isnan(fields).flatten(1).any(1)
origins = [t for t in range(count - 1) if whole[t] and whole[t + 1]]
first, second = int(0.7 * count), int(0.8 * count)
train = [t for t in origins if t + 1 < first]
valid = [t for t in origins if first <= t and t + 1 < second]
test = [t for t in origins if t >= second]
scale = fields[train].std()
x = fields / scale
usual = x[train].mean(0, keepdim=True)


def truth(times):
    return x[[t + 1 for t in times]]


def damping(c):
    now, then = (x[train] - usual)[:, c], (truth(train) - usual)[:, c]
    return ((now * then).sum() / (now * now).sum()).item()


damp = torch.tensor([damping(0), damping(1)]).view(1, 2, 1, 1)


def base(times):
    """Damped persistence, which the network corrects."""
    return usual + damp * (x[times] - usual)


def rmse(forecast, times):
    error = (forecast - truth(times)).square()
    return [((area * error[:, c]).mean().sqrt() * scale).item() for c in range(2)]


class Conv(nn.Module):
    def __init__(self, inputs, outputs, dilation=1):
        super().__init__()
        self.conv, self.dilation = nn.Conv2d(inputs, outputs, 3, dilation=dilation), dilation

    def forward(self, x):
        d = self.dilation
        x = F.pad(x, (d, d, 0, 0), mode="circular")
        return self.conv(F.pad(x, (0, 0, d, d), mode="replicate"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Conv(8, width)
        block = lambda d: nn.Sequential(Conv(width, width, d), nn.GELU(), Conv(width, width, d))
        self.blocks = nn.ModuleList([block(d) for d in (1, 2, 4, 8)])
        self.last = nn.Conv2d(width, 2, 1)
        nn.init.zeros_(self.last.weight)

    def forward(self, x):
        h = self.first(x)
        for block in self.blocks:
            h = h + block(F.gelu(h))
        return self.last(F.gelu(h))


place = torch.stack([latitude.deg2rad().sin(), latitude.deg2rad().cos()])
place = place.view(1, 2, -1, 1).expand(-1, -1, -1, fields.shape[3])


def channels(times):
    mean = usual.expand(len(times), -1, -1, -1)
    return torch.cat([x[times], x[times] - mean, mean, place.expand(len(times), -1, -1, -1)], 1)


def forecast(net, times):
    with torch.no_grad():
        return torch.cat([net(channels([t])) for t in times]) + base(times)


def crps(p, errors, y):
    """The fair CRPS of p + e for the errors e, which stand along dimension 0, at every point."""
    count = len(errors)
    order = errors.sort(0).values
    rank = torch.arange(1, count + 1).view(-1, *[1] * (errors.dim() - 1)).float()
    spread = (order * (2 * rank - count - 1)).sum(0) / (count * (count - 1))
    return torch.stack([(row - truth + order).abs().mean(0) for row, truth in zip(p, y)]) - spread


def dressed(p, e, y):
    """Of each dress, the mean CRPS of a variable; p, e and y are (time, latitude, longitude)."""
    globe = e.flatten()[torch.randperm(e.numel(), generator=torch.Generator().manual_seed(0))[:1000]]
    rows = e.shape[1]
    by_row = torch.zeros(rows)
    for row in range(rows):
        band = e[:, max(row - 2, 0):row + 3].flatten()
        band = band[torch.randperm(band.numel(), generator=torch.Generator().manual_seed(row))[:1000]]
        by_row[row] = crps(p[:, row], band.view(-1, 1), y[:, row]).mean()
    mean = lambda values: (area * values).mean().item() * scale.item()
    return {
        "globe": mean(torch.stack([crps(a, globe.view(-1, 1, 1), b) for a, b in zip(p[:, None], y[:, None])])[:, 0]),
        "latitude": (area.flatten() * by_row).mean().item() * scale.item(),
        "cell": mean(crps(p, e, y)),
    }


print(f"{len(train)}, {len(valid)} and {len(test)} forecasts")
print("persistence", rmse(x[test], test), "damped", rmse(base(test), test))
net = Net()
steps = epochs * len(train) // 4
optimizer = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps)
start = time.time()
for step in range(steps):
    times = [train[i] for i in torch.randint(len(train), (4,))]
    turn = int(torch.randint(fields.shape[3], ()))
    p = net(channels(times).roll(turn, -1)).roll(-turn, -1) + base(times)
    loss = (area * (p - truth(times)).square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        print(f"{step} of {steps}: {loss.item():.4f}, {time.time() - start:.0f} s", flush=True)
p, errors = forecast(net, test), truth(valid) - forecast(net, valid)
print("RMSE", rmse(p, test), f"after {time.time() - start:.0f} s")
for c, name in enumerate(NAMES):
    print(name, "CRPS dressed", dressed(p[:, c], errors[:, c], truth(test)[:, c]))
