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
from resnet_torch_network import ResNet

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
