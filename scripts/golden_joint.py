"""Golden values for the scores of paths in the `bayesmesh` crate, from the package scoringrules.

Made with Python 3.11, scoringrules 0.10.0 and numpy 2.4. With these installed, run

    python scripts/golden_joint.py

It rewrites crates/bayesmesh/tests/golden/joint.json.

Paths and truth are stored; they are multiples of 1/256, exact in float32. Scores are float64.
scoringrules has several estimators of either score, and its own weights:

- es_ensemble with estimator="fair" leaves out pairs of a path with itself; the default, "nrg",
  divides by N^2 instead.
- vs_ensemble with the default "nrg" is the square of the miss of the mean over paths, as ours. It
  sums over all K^2 ordered pairs with weight 1, those of an output with itself, which are 0, and
  both orders of the others; ours is the mean over pairs h < k, so it is divided by K (K - 1).
"""

import json
import re
import textwrap
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scoringrules

OUT = Path(__file__).resolve().parent.parent / "crates/bayesmesh/tests/golden/joint.json"
NOTES = (
    "paths [examples, paths, outputs], truth [examples, outputs]. energy_score: es_ensemble with "
    "estimator='fair'. variogram_score: vs_ensemble with p=0.5, over outputs * (outputs - 1). "
    "Tensors are {shape, data}, row-major."
)


def case(rng, examples, paths, outputs):
    """Correlated paths, and a truth that is not one of them."""
    mixing = rng.normal(size=(outputs, outputs))
    dyadic = lambda values: np.round(values * 256) / 256
    given = dyadic(rng.normal(size=(examples, paths, outputs)) @ mixing)
    truth = dyadic(0.5 + rng.normal(size=(examples, outputs)) @ mixing)
    assert (given.astype(np.float32) == given).all() and (truth.astype(np.float32) == truth).all()
    energy = scoringrules.es_ensemble(truth, given, estimator="fair", backend="numpy")
    variogram = scoringrules.vs_ensemble(truth, given, p=0.5, estimator="nrg", backend="numpy")
    return {
        "paths": tensor(given),
        "truth": tensor(truth),
        "energy_score": tensor(energy),
        "variogram_score": tensor(variogram / (outputs * (outputs - 1))),
    }


def tensor(values):
    return {"shape": list(values.shape), "data": values.flatten().tolist()}


def main():
    rng = np.random.default_rng(5)
    content = {
        "made_by": {
            "script": "scripts/golden_joint.py",
            "scoringrules": version("scoringrules"),
            "numpy": np.__version__,
        },
        "notes": NOTES,
        "cases": [case(rng, *sizes) for sizes in ((4, 2, 2), (3, 7, 3), (3, 12, 6))],
    }
    # Lists of numbers fill their lines.
    fill = lambda found: textwrap.fill(" ".join(found[0].split()), 96)
    text = re.sub(r"\[[^][{}]*\]", fill, json.dumps(content, indent=1)) + "\n"
    assert json.loads(text) == content
    OUT.write_text(text)
    print(f"{OUT.name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
