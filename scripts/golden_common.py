"""What the parts of golden.py share: stored inputs, comparison, and the JSON they write."""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

OUT = Path(__file__).resolve().parent.parent / "crates/bayesmesh/tests/golden"
MADE_BY = {
    "script": "scripts/golden.py",
    "torch": version("torch"),
    "torch_blue": version("torch_blue"),
}
LAYOUT = (
    "Tensors are {shape, data}, row-major. Weights are in PyTorch's layout [out, in] and "
    "y = x W^T + b. w = mean + exp(log_std) * eps; the first axis of eps and of outputs is the "
    "draw. Names ending in _f64 are float64, the others float32."
)
RNG = np.random.default_rng(20240607)


def dyadic(values, step=256):
    """Rounds to multiples of 1/step, as a float32 tensor."""
    return torch.tensor(np.round(np.asarray(values) * step) / step, dtype=torch.float32)


def normal(*shape, scale=1.0):
    """Normal numbers, dyadic."""
    return dyadic(RNG.normal(size=shape) * scale)


def uniform(low, high, *shape):
    """Uniform numbers, dyadic."""
    return dyadic(RNG.uniform(low, high, size=shape))


def close(a, b, tolerance, what):
    """Stops unless the largest difference, relative to the largest entry, is within tolerance."""
    a, b = a.detach().double(), b.detach().double()
    error = (a - b).abs().max().item() / max(b.abs().max().item(), 1e-30)
    assert error <= tolerance, f"{what}: {error:.2e} > {tolerance:.0e}"


def both(single, double):
    """Merges a dictionary of float32 tensors with its float64 twin: x, x_f64."""
    merged = {}
    for key, value in single.items():
        assert value.dtype == torch.float32 and double[key].dtype == torch.float64, key
        close(value, double[key], 1e-5, f"float32 against float64, {key}")
        merged[key] = value.detach()
        merged[f"{key}_f64"] = double[key].detach()
    return merged


def number(value, dtype):
    """A decimal that reads back exactly: 9 digits for a float32, repr for a float64."""
    return format(value, ".9g") if dtype == torch.float32 else repr(value)


def encode(node, indent=0):
    """JSON with number lists wrapped at 100 columns; tensors become {shape, data}."""
    pad = " " * (indent + 1)
    if isinstance(node, torch.Tensor):
        assert bool(torch.isfinite(node).all())
        if node.dim() == 0:
            return number(node.item(), node.dtype)
        lines = [""]
        for value in node.flatten().tolist():
            word = number(value, node.dtype)
            if len(pad) + len(lines[-1]) + len(word) > 96:
                lines.append("")
            lines[-1] += word + ","
        body = f"\n{pad}".join(lines).rstrip(",")
        return f'{{"shape": {list(node.shape)}, "data": [\n{pad}{body}]}}'
    if isinstance(node, dict):
        items = [f"{pad}{json.dumps(k)}: {encode(v, indent + 1)}" for k, v in node.items()]
        return "{\n" + ",\n".join(items) + "\n" + pad[1:] + "}"
    if isinstance(node, list) and node and isinstance(node[0], dict):
        return "[\n" + ",\n".join(pad + encode(v, indent + 1) for v in node) + f"\n{pad[1:]}]"
    return json.dumps(node)


def write(name, content):
    """Writes one golden file."""
    text = encode({"made_by": MADE_BY} | content) + "\n"
    json.loads(text)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(text)
    print(f"{name}.json: {len(text)} bytes")
