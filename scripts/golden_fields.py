"""Golden values for losses and scores of fields in the `bayesmesh` crate, from the packages
scoringrules and torch.

Made with Python 3.11, scoringrules 0.10.0, torch 2.9.0 and numpy 2.4. With these installed, run

    python scripts/golden_fields.py

It rewrites crates/bayesmesh/tests/golden/fields.json.

Draws, truth and weights are stored; draws and truth are multiples of 1/256, exact in float32, and
so are the weights, whose mean is 1. Everything else is float64. The CRPS of each cell is
scoringrules' crps_ensemble: estimator="fair" divides the pairs by S (S - 1), "nrg" by S^2. Gradients are those of torch in float64 of the same written out by hand, which the script
holds against scoringrules. Spread and skill are written out as WeatherBench-X defines them
(metrics/probabilistic.py, UnbiasedSpreadSkillRatio): the mean of the variance with S - 1, over the
mean of (mean - y)^2 - variance / S, and then the root. In the rank histogram a truth that equals
draws counts in equal parts for every rank that it could have.
"""

import json
import re
import textwrap
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scoringrules
import torch

OUT = Path(__file__).resolve().parent.parent / "crates/bayesmesh/tests/golden/fields.json"
NOTES = (
    "draws [draws, examples, fields, cells], truth [examples, fields, cells], cell_weights [cells], "
    "output_weights [fields * cells]. Scores: one number a field, means over examples of weighted "
    "means over cells. crps: mean over examples and outputs; with weights those of outputs; "
    "gradient [draws, examples, fields * cells] that of the almost fair one with weights; gaussian: "
    "mean over examples of the weighted sum over outputs of ((y - m)^2 / v + ln v) / 2. Tensors are "
    "{shape, data}, row-major."
)
ALPHA = 0.95


def dyadic(values):
    return np.round(values * 256) / 256


def weights_of(rng, count):
    """Multiples of 1/256 of mean 1."""
    weights = dyadic(rng.uniform(0.25, 1.75, size=count))
    weights[0] += count - weights.sum()
    assert weights.min() > 0 and weights.mean() == 1
    return weights


def crps_by_hand(draws, truth, alpha):
    """alpha * fair + (1 - alpha) * plain of each cell."""
    count = len(draws)
    pairs = (draws[:, None] - draws[None]).abs().sum((0, 1)) / 2
    per_pair = alpha / (count * (count - 1)) + (1 - alpha) / count**2
    return (draws - truth).abs().mean(0) - per_pair * pairs


def case(rng, members, examples, fields, cells):
    shape = (examples, fields, cells)
    centre = rng.normal(size=shape)
    draws = dyadic(centre + 0.8 * rng.normal(size=(members, *shape)))
    truth = dyadic(centre + rng.normal(size=shape))
    # A truth that equals one draw, and one that equals two.
    truth[0, 0, 0] = draws[0, 0, 0, 0]
    if members > 2:
        truth[0, 0, 1] = draws[1, 0, 0, 1] = draws[0, 0, 0, 1]
    cell_weights = weights_of(rng, cells)
    output_weights = weights_of(rng, fields * cells)

    crps = {
        name: scoringrules.crps_ensemble(truth, draws, m_axis=0, estimator=estimator)
        for name, estimator in (("fair", "fair"), ("plain", "nrg"))
    }
    almost = ALPHA * crps["fair"] + (1 - ALPHA) * crps["plain"]
    leaf = torch.tensor(draws, requires_grad=True)
    hand = crps_by_hand(leaf, torch.tensor(truth), ALPHA)
    assert np.abs(hand.detach().numpy() - almost).max() < 1e-12
    by_output = torch.tensor(output_weights).reshape(fields, cells)
    (hand * by_output).mean().backward()

    mean, variance = draws.mean(0), draws.var(0, ddof=1)
    gaussian = 0.5 * ((truth - mean) ** 2 / variance + np.log(variance))
    over = lambda values: (values * cell_weights).mean(-1)
    mse, variances = over((mean - truth) ** 2), over(variance)
    skill = mse.mean(0) - variances.mean(0) / members
    assert skill.min() > 0
    histogram = np.zeros((fields, members + 1))
    for index in np.ndindex(shape):
        below = (draws[(slice(None), *index)] < truth[index]).sum()
        ties = (draws[(slice(None), *index)] == truth[index]).sum()
        share = cell_weights[index[2]] / (ties + 1)
        histogram[index[1], below : below + ties + 1] += share
    error = lambda values: values.std(0, ddof=1) / np.sqrt(examples)
    return {
        "draws": tensor(draws),
        "truth": tensor(truth),
        "cell_weights": tensor(cell_weights),
        "output_weights": tensor(output_weights),
        "rmse": tensor(np.sqrt(mse.mean(0))),
        "mae": tensor(over(np.abs(mean - truth)).mean(0)),
        "crps": tensor(over(crps["fair"]).mean(0)),
        "crps_error": tensor(error(over(crps["fair"]))),
        "mse_error": tensor(error(mse)),
        "spread": tensor(np.sqrt(variances.mean(0))),
        "spread_skill": tensor(np.sqrt(variances.mean(0) / skill)),
        "rank_histogram": tensor(histogram / (examples * cells)),
        "crps_plain": crps["plain"].mean(),
        "crps_fair": crps["fair"].mean(),
        "crps_almost_fair": almost.mean(),
        "crps_almost_fair_weighted": (almost * by_output.numpy()).mean(),
        "gradient": tensor(leaf.grad.numpy().reshape(members, examples, -1)),
        "gaussian_weighted": (gaussian * by_output.numpy()).sum((1, 2)).mean(),
    }


def tensor(values):
    return {"shape": list(values.shape), "data": values.flatten().tolist()}


def main():
    rng = np.random.default_rng(14)
    content = {
        "made_by": {
            "script": "scripts/golden_fields.py",
            "scoringrules": version("scoringrules"),
            "torch": version("torch"),
            "numpy": np.__version__,
        },
        "notes": NOTES,
        "alpha": ALPHA,
        "cases": [case(rng, *sizes) for sizes in ((2, 3, 2, 5), (5, 2, 3, 4), (7, 4, 1, 6))],
    }
    # Lists of numbers fill their lines.
    fill = lambda found: textwrap.fill(" ".join(found[0].split()), 96)
    text = re.sub(r"\[[^][{}]*\]", fill, json.dumps(content, indent=1)) + "\n"
    assert json.loads(text) == content
    OUT.write_text(text)
    print(f"{OUT.name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
