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
RNG = np.random.default_rng(0)
SEED = 0x0123456789ABCDEF


def restart(seed):
    """Starts the numbers of a file anew, so that files do not depend on each other."""
    RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def dyadic(values, step=256):
    """Rounds to multiples of 1/step, as a float32 tensor."""
    return torch.tensor(np.round(np.asarray(values) * step) / step, dtype=torch.float32)


def normal(*shape, scale=1.0):
    """Normal numbers, dyadic."""
    return dyadic(RNG.normal(size=shape) * scale)


def uniform(low, high, *shape):
    """Uniform numbers, dyadic."""
    return dyadic(RNG.uniform(low, high, size=shape))


def stream_words(tensor, n, draw=0, purpose=0, seed=SEED):
    """The 32-bit words of the first n elements of a stream of BayesMesh at step 0, and some more to
    a multiple of 4, as [blocks, 4]: Philox4x32-10 with the seed as key and
    [element / 4, step, draw, tensor + purpose * 2^24] as counter.
    """
    mask = np.uint64(0xFFFFFFFF)
    blocks = (n + 3) // 4
    c = [np.arange(blocks, dtype=np.uint64)]
    c += [np.full(blocks, v, dtype=np.uint64) for v in (0, draw, tensor + (purpose << 24))]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        high, low = lambda x: x >> np.uint64(32), lambda x: x & mask
        c = [high(b) ^ c[1] ^ np.uint64(k0), low(b), high(a) ^ c[3] ^ np.uint64(k1), low(a)]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, -1)


def stream_normal(draw, tensor, n, seed=SEED):
    """The first n normals of a weight stream: words (0, 1) and (2, 3) of a block become normals by
    Box-Muller with u = (x0 + 1/2) / 2^32 and v = x1 / 2^32.
    """
    x = stream_words(tensor, n, draw, seed=seed).astype(np.float64) / 2.0**32
    out = np.empty(x.shape)
    for i in (0, 2):
        radius = np.sqrt(-2.0 * np.log(x[:, i] + 0.5 / 2.0**32))
        out[:, i] = radius * np.cos(2.0 * np.pi * x[:, i + 1])
        out[:, i + 1] = radius * np.sin(2.0 * np.pi * x[:, i + 1])
    return torch.tensor(out.reshape(-1)[:n], dtype=torch.float32)


def stream_uniform(tensor, n, draw=0, purpose=0, seed=SEED):
    """The first n uniform numbers of a stream, the upper 24 bits over 2^24: exact in float32."""
    words = stream_words(tensor, n, draw, purpose, seed).reshape(-1)[:n]
    return torch.tensor((words >> np.uint64(8)).astype(np.float32) / np.float32(2.0**24))


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


def write(name, content, out=OUT, made_by=MADE_BY):
    """Writes one golden file."""
    text = encode({"made_by": made_by} | content) + "\n"
    json.loads(text)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(text)
    print(f"{name}.json: {len(text)} bytes")
