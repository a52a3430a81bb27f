"""A training step of the paper's Bayesian ViT in JAX, jitted, with KL and Adam.

usage: vit_jax.py BATCH DRAWS STEPS [vmap] [bf16]
Draws go one after the other (scan), or all at once (vmap); products are in f32, or of bf16 summed
in f32. Prints the seconds of the best step.
"""

import sys
import time

import jax
import jax.numpy as jnp
import optax

batch, draws, steps = (int(argument) for argument in sys.argv[1:4])
flags = sys.argv[4:]
assert set(flags) <= {"vmap", "bf16"}, flags
WIDTH, HEADS, DEPTH, TOKENS, PATCH = 192, 3, 6, 64, 4
PIXELS = 3 * PATCH * PATCH
BLOCK = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
SIZES = [(PIXELS, WIDTH)] + DEPTH * BLOCK + [(WIDTH, 10)]

seed = jax.random.key(0)
key_of = lambda number: jax.random.fold_in(seed, number)
parameters = {
    "mean": [jax.random.normal(key_of(n), (i, o)) / i**0.5 for n, (i, o) in enumerate(SIZES)],
    "log_std": [jnp.full((i, o), -5.0) for i, o in SIZES],
    "bias": [jnp.zeros(o) for _, o in SIZES],
}
optimizer = optax.adam(1e-3)
state = optimizer.init(parameters)
images, labels = jax.random.normal(seed, (batch, 3, 32, 32)), jnp.arange(batch) % 10


def product(equation, left, right):
    if "bf16" in flags:
        left, right = left.astype(jnp.bfloat16), right.astype(jnp.bfloat16)
    return jnp.einsum(equation, left, right, preferred_element_type=jnp.float32)


def norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def loss_of_draw(p, key, images, labels):
    keys = jax.random.split(key, len(SIZES))
    normals = zip(p["mean"], p["log_std"], keys)
    weights = [m + jnp.exp(s) * jax.random.normal(k, m.shape) for m, s, k in normals]
    layers = iter(zip(weights, p["bias"]))

    def linear(x):
        weight, bias = next(layers)
        return product("...i,io->...o", x, weight) + bias

    tiles = images.reshape(-1, 3, 8, PATCH, 8, PATCH).transpose(0, 2, 4, 3, 5, 1)
    x = linear(tiles.reshape(batch, TOKENS, PIXELS))
    for _ in range(DEPTH):
        packed = linear(norm(x)).reshape(batch, TOKENS, 3, HEADS, WIDTH // HEADS)
        q, k, v = jnp.moveaxis(packed, (2, 3), (0, 2))
        scores = jax.nn.softmax(product("bhid,bhjd->bhij", q, k) / 8.0, axis=-1)
        x = x + linear(product("bhij,bhjd->bihd", scores, v).reshape(batch, TOKENS, WIDTH))
        x = x + linear(jax.nn.gelu(linear(norm(x)), approximate=False))
    logits = jax.nn.log_softmax(linear(norm(x).mean(1)))
    return -jnp.take_along_axis(logits, labels[:, None], 1).mean()


def distance(p):
    """KL divergence from the standard normal, of an example."""
    normals = zip(p["mean"], p["log_std"])
    return sum((jnp.exp(2 * s) + m * m - 1 - 2 * s).sum() / 2 for m, s in normals) / 45_000


def gradient(p, keys, images, labels):
    if "vmap" in flags:
        losses = jax.vmap(loss_of_draw, (None, 0, None, None))
        return jax.grad(lambda p: losses(p, keys, images, labels).mean() + distance(p))(p)

    def add(total, key):
        of_draw = jax.grad(loss_of_draw)(p, key, images, labels)
        return jax.tree.map(lambda t, g: t + g / draws, total, of_draw), None

    return jax.lax.scan(add, jax.grad(distance)(p), keys)[0]


@jax.jit
def step(p, state, key, images, labels):
    change, state = optimizer.update(
        gradient(p, jax.random.split(key, draws), images, labels), state, p
    )
    return optax.apply_updates(p, change), state


times = []
for number in range(steps + 1):
    start = time.perf_counter()
    parameters, state = step(parameters, state, key_of(number), images, labels)
    jax.block_until_ready(parameters)
    times.append(time.perf_counter() - start)
print(min(times[1:]))
