"""Golden values for the residual network of `bayesmesh-models`, from PyTorch.

Made with Python 3.11, torch 2.9.0 (CPU), safetensors 0.8.0 and numpy 2.4. With these and what
golden.py needs installed, run

    python scripts/golden_resnet.py

It rewrites crates/bayesmesh-models/tests/golden/resnet.json and, for each of its cases,
resnet_CASE.safetensors, the state of a small network with PyTorch's own initial weights and random
gains and shifts of its normalisations, and resnet_CASE_gradients.safetensors, the gradients of the
mean cross entropy over the batch under the same names. The images are numbers of BayesMesh's own
streams, as in golden_vit.py. Logits, loss and gradients are computed in float64; gradients are stored
in float32.
"""

import math
from importlib.metadata import version
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from golden_common import stream_uniform, write

OUT = Path(__file__).resolve().parent.parent / "crates/bayesmesh-models/tests/golden"
MADE_BY = {"script": "scripts/golden_resnet.py", "torch": version("torch")}
PURPOSE = 5  # made-up data
IMAGES = 1000  # the tensor number of the images
CASES = {
    # Rows and columns that cannot be halved, and a short way with a convolution.
    "odd": dict(image=9, channels=3, width=8, blocks=[1, 1], stride=1, groups=4, classes=3),
    # Large squares at the beginning.
    "wide": dict(image=20, channels=2, width=6, blocks=[2, 1], stride=4, groups=3, classes=4),
}
LABELS = [2, 0, 1]


class Block(nn.Module):
    """A residual block whose activations come before its convolutions."""

    def __init__(self, inputs, outputs, stride, groups):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.norm2 = nn.GroupNorm(groups, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.short = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else None

    def forward(self, x):
        h = F.relu(self.norm1(x))
        short = x if self.short is None else self.short(h)
        return short + self.conv2(F.relu(self.norm2(self.conv1(h))))


class ResNet(nn.Module):
    """A convolution, blocks, the mean over all places, a linear layer."""

    def __init__(self, image, channels, width, blocks, stride, groups, classes):
        super().__init__()
        side = max(2 * stride - 1, 3)
        self.stem = nn.Conv2d(channels, width, side, stride, side // 2)
        stages, inputs = [], width
        for stage, count in enumerate(blocks):
            for block in range(count):
                halves = stage > 0 and block == 0
                stages.append(Block(inputs, width << stage, 2 if halves else 1, groups))
                inputs = width << stage
        self.blocks = nn.Sequential(*stages)
        self.norm = nn.GroupNorm(groups, inputs)
        self.head = nn.Linear(inputs, classes)

    def forward(self, images):
        return self.head(F.relu(self.norm(self.blocks(self.stem(images)))).mean((2, 3)))


def case(name, config):
    torch.manual_seed(0)
    network = ResNet(**config)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.GroupNorm):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
    save_file(network.state_dict(), OUT / f"resnet_{name}.safetensors", metadata={"format": "pt"})
    shape = [len(LABELS), config["channels"], config["image"], config["image"]]
    u = stream_uniform(IMAGES, math.prod(shape), 0, PURPOSE).reshape(shape)
    network, images = network.double(), (2 * u - 1).double()
    logits = network(images)
    loss = F.cross_entropy(logits, torch.tensor(LABELS))
    loss.backward()
    gradients = {n: p.grad.float().contiguous() for n, p in network.named_parameters()}
    save_file(gradients, OUT / f"resnet_{name}_gradients.safetensors", metadata={"format": "pt"})
    about = dict(shape=shape, tensor=IMAGES, scale=1.0)
    return dict(
        config=config, images=about, labels=LABELS, logits_f64=logits.flatten().tolist(), loss_f64=loss.item()
    )


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    write("resnet", {name: case(name, config) for name, config in CASES.items()}, OUT, MADE_BY)


if __name__ == "__main__":
    main()
