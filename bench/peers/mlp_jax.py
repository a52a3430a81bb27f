"""The load forecast's MC-dropout MLP in JAX, jitted: time of a training step, all draws at once.

usage: mlp_jax.py BATCH DRAWS STEPS     prints the milliseconds of a step
"""

import sys
import time

import jax
import jax.numpy as jnp
import optax

batch, draws, steps = (int(argument) for argument in sys.argv[1:4])
seed = jax.random.key(0)
key_of = lambda number: jax.random.fold_in(seed, number)
SIZES = [(96, 128), (128, 128), (128, 24)]
parameters = [
    (jax.random.normal(key_of(n), size) / size[0] ** 0.5, jnp.zeros(size[1]))
    for n, size in enumerate(SIZES)
]
optimizer = optax.adam(1e-3)
state = optimizer.init(parameters)
series = jax.random.normal(seed, (170_000 + 120,))
order = jax.random.permutation(seed, 170_000)


def loss(p, key, inputs, targets):
    # The first layer is the same for all draws.
    hidden = jax.nn.relu(inputs @ p[0][0] + p[0][1])
    hidden = jnp.broadcast_to(hidden, (draws, batch, 128))
    for number, (weight, bias) in enumerate(p[1:]):
        kept = jax.random.bernoulli(jax.random.fold_in(key, number), 0.9, hidden.shape)
        hidden = jnp.where(kept, hidden / 0.9, 0.0) @ weight + bias
        if number == 0:
            hidden = jax.nn.relu(hidden)
    return ((hidden.mean(0) - targets) ** 2).mean()


@jax.jit
def step(p, state, number):
    rows = jax.lax.dynamic_slice(order, ((number * batch) % 160_000,), (batch,))
    windows = series[rows[:, None] + jnp.arange(120)]
    gradient = jax.grad(loss)(p, key_of(number), windows[:, :96], windows[:, 96:])
    change, state = optimizer.update(gradient, state, p)
    return optax.apply_updates(p, change), state


for number in range(50):
    parameters, state = step(parameters, state, number)
jax.block_until_ready(parameters)
start = time.perf_counter()
for number in range(steps):
    parameters, state = step(parameters, state, 50 + number)
jax.block_until_ready(parameters)
print((time.perf_counter() - start) / steps * 1e3)
