"""Golden values for the shifted-window transformer of `bayesmesh-models`, from PyTorch.

Made with Python 3.11, torch 2.9.0 (CPU), safetensors 0.8.0 and numpy 2.4. With these and what
golden.py needs installed, run

    python scripts/golden_swin.py

It rewrites crates/bayesmesh-models/tests/golden/{swin.json, swin_small.safetensors}.

swin.json has networks for three grids: one that windows divide, where the mask between the poles
matters; one with odd rows, padded everywhere, whose second example is turned; and one with patches
of a single point. Nothing that goes in is stored: weights, fields and the directions along which
gradients are compared are offset + scale * (2u - 1) with u the uniform numbers of BayesMesh's own
streams, computed here from their definition, in float32 and therefore the same to the last bit on
both sides. Stored are the outputs, and of the gradient of every tensor its norm, its products with
two directions and some elements. The differentiated number is the product of the outputs with a
direction. A field `x` is computed in float32, `x_f64` in float64 from the same inputs. Norms and
products are sums in float64.

swin_small.safetensors is the state of a network saved by PyTorch; its outputs for fields from a
stream are in swin.json.

The network is written from its description alone: padding at the bottom, windows by `unfold`-like
indexing of an explicit list of tokens, and the mask from the latitudes of the tokens of a window.
"""

import math
from importlib.metadata import version
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from golden_common import SEED, close, stream_uniform, write

OUT = Path(__file__).resolve().parent.parent / "crates/bayesmesh-models/tests/golden"
MADE_BY = {"script": "scripts/golden_swin.py", "torch": version("torch")}
NOTES = (
    "Element e of tensor t in PyTorch's layout is offset + scale * (2u - 1), in float32, of the "
    "uniform number u of element e of the stream (seed, purpose, step 0, draw, tensor t): draw 0 for "
    "weights and fields, 1 and 2 for directions, which have offset 0 and scale 1. Gradients are "
    "those of the product of the outputs with direction 1 of the tensor after the fields. Names "
    "ending in _f64 are float64."
)
PURPOSE = 5  # made-up data
FIELDS = 1000  # the tensor number of the fields; the next is that of the outputs
EVEN = dict(channels=4, variables=2, grid=(24, 48), patch=2, width=12, depths=(2, 2, 2), heads=(2, 4), window=(3, 6))
ODD = dict(channels=5, variables=3, grid=(13, 24), patch=2, width=12, depths=(2, 2, 3), heads=(3, 2), window=(4, 3))
POINTS = dict(channels=3, variables=3, grid=(5, 16), patch=1, width=12, depths=(1, 2, 2), heads=(1, 4), window=(2, 4))
SMALL = dict(channels=3, variables=2, grid=(7, 16), patch=2, width=8, depths=(2, 1, 2), heads=(2, 2), window=(2, 4))


class Attention(nn.Module):
    """Windows of attention, from `tokens`, a list of what each window is made of."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads

    def forward(self, qkv, tokens, latitudes):
        """qkv (tokens, 3 width); tokens (windows, n) are places in it, latitudes (windows, n)."""
        windows, n = tokens.shape
        parts = qkv[tokens].reshape(windows, n, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        # Tokens that came around the poles are far from the others.
        far = latitudes[:, :, None] != latitudes[:, None, :]
        scores = scores + (far * -10000.0).to(scores)[:, None]
        return (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(windows, n, -1)


class Block(nn.Module):
    """x + norm1(proj(attention)), then x + norm2(perceptron)."""

    def __init__(self, width, heads, window, shifted):
        super().__init__()
        self.window, self.shifted = window, shifted
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.attention = Attention(width, heads)

    def windows(self, rows, columns):
        """The tokens of every window in the padded grid, and which side of the seam they are on."""
        high, wide = self.window
        up, left = (high // 2, wide // 2) if self.shifted else (0, 0)
        tokens, sides = [], []
        for top in range(0, rows, high):
            for start in range(0, columns, wide):
                places = [(top + i, start + j) for i in range(high) for j in range(wide)]
                turned = [((i + up) % rows, (j + left) % columns) for i, j in places]
                tokens.append([i * columns + j for i, j in turned])
                sides.append([int(i + up >= rows) for i, j in places])
        return torch.tensor(tokens), torch.tensor(sides)

    def forward(self, x):
        """x (rows, columns, width)."""
        h, w, width = x.shape
        missing = -h % self.window[0]
        padded = torch.cat([x, x.new_zeros(missing, w, width)])
        tokens, sides = self.windows(h + missing, w)
        mixed = self.attention(self.qkv(padded.reshape(-1, width)), tokens, sides)
        back = mixed.new_zeros((h + missing) * w, width)
        back = back.index_put((tokens.reshape(-1),), mixed.reshape(-1, width))
        x = x + self.norm1(self.proj(back.reshape(h + missing, w, width)[:h]))
        return x + self.norm2(self.fc2(F.gelu(self.fc1(x))))


class Down(nn.Module):
    """Four tokens become one of twice the width."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.linear = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        h, _, _ = x.shape
        x = torch.cat([x, x.new_zeros(h % 2, *x.shape[1:])])
        four = [x[i::2, j::2] for i in (0, 1) for j in (0, 1)]
        return self.linear(self.norm(torch.cat(four, -1)))


class Up(nn.Module):
    """One token becomes four of half the width; rows beyond `rows` are left out."""

    def __init__(self, width):
        super().__init__()
        self.expand = nn.Linear(2 * width, 4 * width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width, bias=False)

    def forward(self, x, rows):
        four = self.expand(x).chunk(4, -1)
        upper, lower = (torch.stack(pair, 2).flatten(1, 2) for pair in (four[:2], four[2:]))
        return self.linear(self.norm(torch.stack([upper, lower], 1).flatten(0, 1)[:rows]))


class Swin(nn.Module):
    """Fields (examples, channels, latitudes, longitudes) to (examples, variables, ...)."""

    def __init__(self, channels, variables, grid, patch, width, depths, heads, window):
        super().__init__()
        self.grid, self.patch = grid, patch

        def layer(depth, width, heads):
            return nn.ModuleList(Block(width, heads, window, i % 2 == 1) for i in range(depth))

        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.layer1 = layer(depths[0], width, heads[0])
        self.down = Down(width)
        self.middle = layer(depths[1], 2 * width, heads[1])
        self.up = Up(width)
        self.layer4 = layer(depths[2], width, heads[0])
        self.recover = nn.ConvTranspose2d(2 * width, variables, patch, patch)

    def one(self, x):
        x = F.pad(x, (0, 0, 0, -self.grid[0] % self.patch))
        x = self.embed(x[None])[0].permute(1, 2, 0)
        for block in self.layer1:
            x = block(x)
        first, x = x, self.down(x)
        for block in self.middle:
            x = block(x)
        x = self.up(x, first.shape[0])
        for block in self.layer4:
            x = block(x)
        x = torch.cat([first, x], -1).permute(2, 0, 1)
        return self.recover(x[None])[0, :, : self.grid[0]]

    def forward(self, fields, turns):
        """Every example turned, and turned back."""
        outputs = [self.one(x.roll(k, -1)).roll(-k, -1) for x, k in zip(fields, turns)]
        return torch.stack(outputs)


def stream_tensor(tensor, shape, scale=1.0, offset=0.0, draw=0):
    """offset + scale * (2u - 1) in float32."""
    u = stream_uniform(tensor, math.prod(shape), draw, PURPOSE).reshape(shape)
    return torch.tensor(offset) + torch.tensor(scale) * (2 * u - 1)


def like_standard(fan_in):
    """The scale at which uniform numbers have the standard deviation 1 / sqrt(fan_in)."""
    return torch.tensor(math.sqrt(3 / fan_in), dtype=torch.float32).item()


def spread(network):
    """Scale and offset of every tensor: gains 1 +- 0.2, biases +- 0.2, weights by their fan-in."""
    small = torch.tensor(0.2, dtype=torch.float32).item()
    norms = {n for n, m in network.named_modules() if isinstance(m, nn.LayerNorm)}
    spreads = {}
    for name, value in network.named_parameters():
        layer, kind = name.rsplit(".", 1)
        gain = layer in norms and kind == "weight"
        fan_in = value.shape[0] if layer == "recover" else math.prod(value.shape[1:])
        scale = small if value.dim() == 1 else like_standard(fan_in)
        spreads[name] = {"offset": 1.0 if gain else 0.0, "scale": scale}
    return spreads


def measures(index, gradient):
    """What is stored of a gradient."""
    flat = gradient.detach().double().reshape(-1)
    n = flat.numel()
    directions = [stream_tensor(index, [n], draw=draw).double() for draw in (1, 2)]
    places = torch.tensor(sorted({0, n // 3, 2 * n // 3, n - 1}))
    return places, {
        "norm": flat.norm(),
        "products": torch.stack([flat @ direction for direction in directions]),
        "elements": flat[places],
    }


def case(sizes, turns):
    """Outputs and gradients of a network whose weights come from streams."""
    network = Swin(**sizes)
    spreads = spread(network)
    parameters = dict(network.named_parameters())
    for index, (name, value) in enumerate(parameters.items()):
        value.data = stream_tensor(index, value.shape, **spreads[name])
    shape = [len(turns), sizes["channels"], *sizes["grid"]]
    scale = like_standard(1)
    fields = stream_tensor(FIELDS, shape, scale)
    direction = stream_tensor(FIELDS + 1, [len(turns), sizes["variables"], *sizes["grid"]], draw=1)

    sides = []
    for dtype in (torch.float32, torch.float64):
        network.to(dtype)
        outputs = network(fields.to(dtype), turns)
        scalar = (outputs * direction.to(dtype)).sum()
        gradients = torch.autograd.grad(scalar, list(parameters.values()))
        sides.append((outputs.detach(), gradients))
    (outputs, gradients), (outputs_f64, gradients_f64) = sides
    close(outputs, outputs_f64, 3e-5, "outputs")

    tensors = []
    for index, name in enumerate(parameters):
        close(gradients[index], gradients_f64[index], 1e-4, f"gradient of {name}")
        places, _ = measures(index, gradients[index])
        _, double = measures(index, gradients_f64[index])
        entry = {"name": name, "shape": list(parameters[name].shape)} | spreads[name]
        entry["places"] = places.tolist()
        entry |= {f"{key}_f64": value for key, value in double.items()}
        tensors.append(entry)
    return {
        "config": sizes,
        "seed": SEED,
        "purpose": PURPOSE,
        "fields": {"tensor": FIELDS, "scale": scale, "shape": shape, "turns": turns},
        "outputs": outputs_f64.float(),
        "tensors": tensors,
    }


def small():
    """A network as PyTorch makes and saves it."""
    torch.manual_seed(1)
    network = Swin(**SMALL)
    OUT.mkdir(parents=True, exist_ok=True)
    save_file(network.state_dict(), OUT / "swin_small.safetensors")
    shape = [1, SMALL["channels"], *SMALL["grid"]]
    scale = like_standard(1)
    fields = stream_tensor(FIELDS, shape, scale)
    outputs = network.double()(fields.double(), [0]).detach()
    return {
        "config": SMALL,
        "fields": {"tensor": FIELDS, "scale": scale, "shape": shape, "turns": [0]},
        "outputs": outputs.float(),
    }


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    content = {"notes": NOTES}
    content |= {"even": case(EVEN, [0]), "odd": case(ODD, [0, 7]), "points": case(POINTS, [0])}
    write("swin", content | {"small": small()}, OUT, MADE_BY)


if __name__ == "__main__":
    main()
