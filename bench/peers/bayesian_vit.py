"""The paper's Bayesian ViT in plain PyTorch: weights are drawn by hand, draw after draw; biases are
learned as they are.

Under `torchrun` every process takes its share of the draws of the same batch, and gradients are
summed over gloo: the paper's sampling parallelism.
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F

WIDTH, HEADS, DEPTH, TOKENS, PATCH, CLASSES = 192, 3, 6, 64, 4, 10
PIXELS = 3 * PATCH * PATCH
BLOCK = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
SIZES = [(PIXELS, WIDTH)] + DEPTH * BLOCK + [(WIDTH, CLASSES)]

WORLD, RANK = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))


def positions():
    """Sines and cosines of both coordinates of a patch."""
    rates = 10_000 ** -(torch.arange(WIDTH // 4) / (WIDTH // 4 - 1))
    y, x = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    angles = [coordinate.reshape(-1, 1) * rates for coordinate in (x, y)]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], 1)


def logits_of_draw(means, log_stds, biases, places, noise, images):
    weights = [m + s.exp() * e for m, s, e in zip(means, log_stds, noise)]
    layers = iter(zip(weights, biases))
    tiles = images.reshape(-1, 3, 8, PATCH, 8, PATCH).permute(0, 2, 4, 3, 5, 1)
    x = F.linear(tiles.reshape(-1, TOKENS, PIXELS), *next(layers)) + places
    for _ in range(DEPTH):
        packed = F.linear(F.layer_norm(x, (WIDTH,)), *next(layers))
        q, k, v = packed.reshape(-1, TOKENS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + F.linear(mixed.reshape(-1, TOKENS, WIDTH), *next(layers))
        hidden = F.gelu(F.linear(F.layer_norm(x, (WIDTH,)), *next(layers)))
        x = x + F.linear(hidden, *next(layers))
    return F.linear(F.layer_norm(x, (WIDTH,)).mean(1), *next(layers))


def loss_of_draw(means, log_stds, biases, places, noise, images, labels):
    logits = logits_of_draw(means, log_stds, biases, places, noise, images)
    return F.cross_entropy(logits, labels)


def distance(means, log_stds):
    """KL divergence from the standard normal."""
    of = lambda m, s: (torch.exp(2 * s) + m * m - 1 - 2 * s).sum() / 2
    return sum(of(m, s) for m, s in zip(means, log_stds))


class BayesianViT:
    """Network and Adam, trained step by step. With "bf16" among the flags under autocast, with
    "compile" through torch.compile."""

    def __init__(self, examples, flags):
        assert set(flags) <= {"bf16", "compile"}, flags
        torch.manual_seed(0)
        means = [(torch.randn(o, i) / i**0.5).requires_grad_() for i, o in SIZES]
        log_stds = [torch.full((o, i), -5.0).requires_grad_() for i, o in SIZES]
        biases = [torch.zeros(o, requires_grad=True) for _, o in SIZES]
        self.normals, self.places = (means, log_stds), positions()
        self.network = (means, log_stds, biases, self.places)
        self.parameters = means + log_stds + biases
        self.examples, self.bf16 = examples, "bf16" in flags
        self.optimizer = torch.optim.Adam(self.parameters, lr=1e-3, fused=True)
        compiled = torch.compile if "compile" in flags else lambda function: function
        self.loss, self.logits = compiled(loss_of_draw), compiled(logits_of_draw)
        self.distance = compiled(distance)
        if WORLD > 1:
            dist.init_process_group("gloo")
        torch.manual_seed(RANK)

    def autocast(self):
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16)

    def noise(self):
        return [torch.randn_like(mean) for mean in self.normals[0]]

    def step(self, images, labels, draws):
        """A training step."""
        self.optimizer.zero_grad()
        for _ in range(draws // WORLD):
            with self.autocast():
                loss = self.loss(*self.network, self.noise(), images, labels)
            (loss / draws).backward()
        if WORLD > 1:
            self.add_gradients()
        (self.distance(*self.normals) / self.examples).backward()
        self.optimizer.step()

    def add_gradients(self):
        total = torch.cat([p.grad.flatten() for p in self.parameters])
        dist.all_reduce(total)
        pieces = total.split([p.numel() for p in self.parameters])
        for parameter, piece in zip(self.parameters, pieces):
            parameter.grad = piece.view_as(parameter)

    @torch.no_grad()
    def probabilities(self, images, draws):
        """What the mean over draws predicts."""
        total = torch.zeros(len(images), CLASSES)
        for _ in range(draws // WORLD):
            with self.autocast():
                logits = self.logits(*self.network, self.noise(), images)
            total += logits.float().softmax(-1) / draws
        if WORLD > 1:
            dist.all_reduce(total)
        return total
