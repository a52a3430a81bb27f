"""Golden values for the tests of the `bayesmesh` crate, from PyTorch and torch_blue.

Made with Python 3.11, torch 2.9.0 (CPU), torch_blue 1.1.0 and numpy 2.4. With these installed, run

    python scripts/golden.py

It rewrites crates/bayesmesh/tests/golden/{categorical, mean_field_normal, expected_losses, kl,
metrics}.json. The parts are in golden_elbo.py, golden_kl.py, golden_metrics.py, golden_common.py.

Every input is stored. Weights and data are multiples of 1/256: exact in float32, in float64 and in
the file. The noise is that of BayesMesh's own streams at step 0 of the stored seed, computed here
from their definition, so that the whole of a training step can be compared. A field `x` is float32
as torch computes it, printed with 9 digits (enough to read it back exactly); `x_f64` is the same
quantity computed in float64 from the same inputs, so that a discrepancy can be judged.

categorical and mean_field_normal come from torch_blue itself: its VILinear modules run their own
vectorised forward pass, with `MeanFieldNormal._normal_sample` patched to use the stored noise, and
its loss objects are evaluated and differentiated, in float32 and in float64. The same quantities
are computed by hand in plain torch, w = mean + exp(log_std) * eps, draw by draw. The script stops
unless outputs, losses and gradients by hand agree with torch_blue's to 1e-12 in float64, outputs
and losses to 1e-6 in float32, and everything in float32 with float64 to 1e-5 (differences relative
to the largest entry of the tensor).
"""

import torch
from torch_blue.vi.distributions import Categorical, MeanFieldNormal

from golden_common import LAYOUT, normal, restart, write
from golden_elbo import (
    cross_entropies,
    draws_gaussian_nll,
    elbo_case,
    expected_case,
    mean_probability_nll,
    squared_errors,
)
from golden_kl import kl_case
from golden_metrics import metrics_case


def main():
    torch.set_num_threads(1)
    restart(1)
    classification = elbo_case(
        sizes=[5, 7, 4],
        activation="relu",
        samples=3,
        inputs=normal(6, 5),
        targets=torch.tensor([0, 3, 1, 2, 2, 0]),
        prior=(0.0, 1.0),
        predictive=Categorical(),
        data_by_hand=mean_probability_nll,
        heat=0.25,
        dataset_size=120,
        log_std=(-3.0, -0.5),
    )
    restart(2)
    regression = elbo_case(
        sizes=[4, 6, 3],
        activation="tanh",
        samples=4,
        inputs=normal(5, 4),
        targets=normal(5, 3),
        prior=(0.125, 0.5),
        predictive=MeanFieldNormal(),
        data_by_hand=draws_gaussian_nll,
        heat=0.5,
        dataset_size=80,
        log_std=(-2.0, -0.5),
    )
    write("categorical", classification)
    write("mean_field_normal", regression)
    notes = (
        "The networks of categorical.json and mean_field_normal.json. expected_*: mean over draws "
        "of the draw's loss. cross entropy: mean over the batch. mse: mean over batch and outputs."
    )
    write(
        "expected_losses",
        {
            "layout": LAYOUT,
            "notes": notes,
            "classification": expected_case(classification, cross_entropies),
            "regression": expected_case(regression, squared_errors),
        },
    )
    restart(3)
    write("kl", kl_case())
    restart(4)
    write("metrics", metrics_case())


if __name__ == "__main__":
    main()
