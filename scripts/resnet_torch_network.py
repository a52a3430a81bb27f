"""The residual network of `bayesmesh-models` in PyTorch, for golden values and benchmarks."""

import torch.nn.functional as F
from torch import nn


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
