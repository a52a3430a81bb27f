"""Writes crates/bayesmesh-models/tests/golden/patch_transformer*: the transformer of series in
PyTorch, its weights, inputs, outputs, and the gradients of a squared error.

    pip install torch==2.9.0 numpy safetensors
    python scripts/golden_patch_transformer.py
"""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

COLUMNS, STEPS, PATCH, WIDTH, DEPTH, HEADS, MLP, OUTPUTS = 3, 24, 4, 8, 2, 2, 16, 7
NUMBERS, CODES, EMBEDDING, ROWS = 5, 4, 3, 6


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, MLP)
        self.down = nn.Linear(MLP, WIDTH)

    def forward(self, x):
        rows, tokens, _ = x.shape
        heads = self.qkv(self.attention_norm(x)).view(rows, tokens, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, tokens, WIDTH))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class PatchTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(COLUMNS * PATCH, WIDTH)
        self.context = nn.Linear(NUMBERS + EMBEDDING, WIDTH)
        self.embeddings = nn.ModuleList([nn.Embedding(CODES, EMBEDDING)])
        self.blocks = nn.ModuleList([Block() for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear((STEPS // PATCH + 1) * WIDTH, OUTPUTS)

    def forward(self, x):
        past, numbers, code = x.split([COLUMNS * STEPS, NUMBERS, 1], dim=1)
        pieces = past.view(-1, COLUMNS, STEPS // PATCH, PATCH).transpose(1, 2).flatten(2)
        tokens = self.embed(pieces) + positions().to(x.dtype)
        context = torch.cat([numbers, self.embeddings[0](code[:, 0].long())], dim=1)
        tokens = torch.cat([tokens, self.context(context)[:, None]], dim=1)
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(self.norm(tokens).flatten(1))


def positions():
    place = torch.arange(STEPS // PATCH, dtype=torch.float64)[:, None]
    half = torch.arange(WIDTH // 2, dtype=torch.float64)
    angle = place * 10_000 ** (-2 * half / WIDTH)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


def main():
    torch.manual_seed(7)
    network = PatchTransformer()
    for parameter in network.parameters():  # also the biases and norms, which begin at 0 and 1
        nn.init.normal_(parameter, std=1 / math.sqrt(max(parameter.shape[-1], 4)))
    folder = Path(__file__).parent.parent / "crates/bayesmesh-models/tests/golden"
    save_file(network.state_dict(), folder / "patch_transformer.safetensors")
    codes = torch.tensor([[0.0], [1.0], [2.0], [3.0], [1.0], [3.0]])
    inputs = torch.cat([torch.randn(ROWS, COLUMNS * STEPS + NUMBERS), codes], dim=1)
    network = network.double()
    outputs = network(inputs.double())
    targets = torch.randn(ROWS, OUTPUTS)
    loss = F.mse_loss(outputs, targets.double())
    loss.backward()
    gradients = {name: p.grad.float() for name, p in network.named_parameters()}
    save_file(gradients, folder / "patch_transformer_gradients.safetensors")
    golden = {
        "made_by": f"scripts/golden_patch_transformer.py, PyTorch {torch.__version__}",
        "inputs": inputs.flatten().tolist(),
        "targets": targets.flatten().tolist(),
        "outputs_f64": outputs.flatten().tolist(),
        "loss_f64": loss.item(),
    }
    (folder / "patch_transformer.json").write_text(json.dumps(golden) + "\n")


main()
