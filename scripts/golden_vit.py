"""Golden values for the vision transformer of `bayesmesh-models`, from PyTorch.

Made with Python 3.11, torch 2.9.0 (CPU), safetensors 0.8.0 and numpy 2.4. With these and what
golden.py needs installed, run

    python scripts/golden_vit.py

It rewrites crates/bayesmesh-models/tests/golden/{vit.json, vit_small.safetensors}.

vit.json has the network of the paper, 2,676,778 weights. None is stored: weights, images and the
directions along which gradients are compared are offset + scale * (2u - 1) with u the uniform
numbers of BayesMesh's own streams, computed here from their definition, in float32 and therefore
the same to the last bit on both sides. Stored are the logits, the cross entropy, and of the gradient
of every tensor its norm, its products with two directions and some elements. A field `x` is computed
in float32, `x_f64` in float64 from the same inputs. Norms and products are sums in float64.

vit_small.safetensors is the state of a small network with PyTorch's own initial weights, saved by
PyTorch; its logits for images from a stream are in vit.json.
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
MADE_BY = {"script": "scripts/golden_vit.py", "torch": version("torch")}
NOTES = (
    "Element e of tensor t in PyTorch's layout is offset + scale * (2u - 1), in float32, of the "
    "uniform number u of element e of the stream (seed, purpose, step 0, draw, tensor t): draw 0 for "
    "weights and images, 1 and 2 for directions, which have offset 0 and scale 1. Gradients are "
    "those of the mean cross entropy over the batch. Names ending in _f64 are float64."
)
PURPOSE = 5  # made-up data
IMAGES = 1000  # the tensor number of the images
CIFAR10 = dict(image=32, channels=3, patch=4, width=192, depth=6, heads=3, mlp=768, classes=10)
SMALL = dict(image=12, channels=2, patch=4, width=16, depth=2, heads=2, mlp=24, classes=5)
LABELS = [3, 0, 9, 6]


class Patches(nn.Module):
    """[B, C, H, W] to [B, patches, pixels], pixels in the order row, column, channel."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, images):
        b, c, h, w = images.shape
        p = self.size
        cut = images.reshape(b, c, h // p, p, w // p, p)
        return cut.permute(0, 2, 4, 3, 5, 1).reshape(b, (h // p) * (w // p), p * p * c)


class Attention(nn.Module):
    """Self attention, normalised before, without biases."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        b, n, width = x.shape
        split = self.to_qkv(self.norm(x)).reshape(b, n, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        mixed = torch.softmax(scores, -1) @ v
        return self.to_out(mixed.transpose(1, 2).reshape(b, n, width))


class Perceptron(nn.Module):
    """Two layers with GELU between, normalised before."""

    def __init__(self, width, hidden):
        super().__init__()
        layers = nn.LayerNorm(width), nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


class Transformer(nn.Module):
    """Blocks of attention and perceptron, and a normalisation."""

    def __init__(self, width, depth, heads, mlp):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        blocks = [[Attention(width, heads), Perceptron(width, mlp)] for _ in range(depth)]
        self.layers = nn.ModuleList(nn.ModuleList(block) for block in blocks)

    def forward(self, x):
        for attention, perceptron in self.layers:
            x = x + attention(x)
            x = x + perceptron(x)
        return self.norm(x)


class Vit(nn.Module):
    """The simple vision transformer: fixed positions, mean over tokens."""

    def __init__(self, image, channels, patch, width, depth, heads, mlp, classes):
        super().__init__()
        pixels = patch * patch * channels
        self.side, self.width = image // patch, width
        self.to_patch_embedding = nn.Sequential(
            Patches(patch), nn.LayerNorm(pixels), nn.Linear(pixels, width), nn.LayerNorm(width)
        )
        self.transformer = Transformer(width, depth, heads, mlp)
        self.linear_head = nn.Linear(width, classes)

    def positions(self, dtype):
        """[sin x w, cos x w, sin y w, cos y w] with w_k = 10000^(-k / (n - 1)), n = width / 4."""
        n = self.width // 4
        frequency = 10000 ** (-torch.arange(n, dtype=dtype) / (n - 1))
        place = torch.arange(self.side, dtype=dtype)
        y, x = (t.reshape(-1, 1) * frequency for t in torch.meshgrid(place, place, indexing="ij"))
        return torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], -1)

    def forward(self, images):
        tokens = self.to_patch_embedding(images)
        tokens = tokens + self.positions(images.dtype)
        return self.linear_head(self.transformer(tokens).mean(1))


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
        scale = like_standard(value.shape[1]) if value.dim() == 2 else small
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


def full_size():
    """The network of the paper: outputs, loss and gradients."""
    torch.manual_seed(0)
    network = Vit(**CIFAR10)
    assert sum(p.numel() for p in network.parameters()) == 2_676_778
    spreads = spread(network)
    parameters = dict(network.named_parameters())
    for index, (name, value) in enumerate(parameters.items()):
        value.data = stream_tensor(index, value.shape, **spreads[name])
    shape = [len(LABELS), CIFAR10["channels"], CIFAR10["image"], CIFAR10["image"]]
    scale = like_standard(1)
    images = stream_tensor(IMAGES, shape, scale)

    sides = []
    for dtype in (torch.float32, torch.float64):
        network.to(dtype)
        logits = network(images.to(dtype))
        loss = F.cross_entropy(logits, torch.tensor(LABELS))
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        sides.append((logits.detach(), loss.detach(), gradients))
    (logits, loss, gradients), (logits_f64, loss_f64, gradients_f64) = sides
    close(logits, logits_f64, 1e-5, "logits")
    close(loss, loss_f64, 1e-5, "loss")

    tensors = []
    for index, name in enumerate(parameters):
        close(gradients[index], gradients_f64[index], 1e-4, f"gradient of {name}")
        places, single = measures(index, gradients[index])
        _, double = measures(index, gradients_f64[index])
        entry = {"name": name, "shape": list(parameters[name].shape)} | spreads[name]
        entry["places"] = places.tolist()
        for key, value in single.items():
            entry |= {key: value.float(), f"{key}_f64": double[key]}
        tensors.append(entry)
    tokens = [1, 8, 63]
    return {
        "config": CIFAR10,
        "seed": SEED,
        "purpose": PURPOSE,
        "images": {"tensor": IMAGES, "scale": scale, "shape": shape},
        "labels": LABELS,
        "positions": {"tokens": tokens, "values_f64": network.positions(torch.float64)[tokens]},
        "logits": logits,
        "logits_f64": logits_f64,
        "loss": loss,
        "loss_f64": loss_f64,
        "tensors": tensors,
    }


def small():
    """A network as PyTorch makes and saves it."""
    torch.manual_seed(1)
    network = Vit(**SMALL)
    OUT.mkdir(parents=True, exist_ok=True)
    save_file(network.state_dict(), OUT / "vit_small.safetensors")
    shape = [2, SMALL["channels"], SMALL["image"], SMALL["image"]]
    scale = like_standard(1)
    images = stream_tensor(IMAGES, shape, scale)
    return {
        "config": SMALL,
        "images": {"tensor": IMAGES, "scale": scale, "shape": shape},
        "logits": network(images).detach(),
        "logits_f64": network.double()(images.double()).detach(),
    }


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    content = {"notes": NOTES, "full": full_size(), "small": small()}
    write("vit", content, OUT, MADE_BY)


if __name__ == "__main__":
    main()
