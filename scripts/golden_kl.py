"""Kullback-Leibler divergences of vectors: analytic and Monte Carlo, three priors, two scales."""

import math

import torch
import torch.nn.functional as F
from torch import distributions as td
from torch_blue.vi.analytical_kl_loss import NormalNormalDivergence
from torch_blue.vi.distributions import MeanFieldNormal

from golden_common import SEED, both, close, dyadic, normal, stream_normal, uniform

PRIORS = [
    {"kind": "normal", "mean": 0.0, "std": 1.0},
    {"kind": "normal", "mean": 0.5, "std": 0.3},
    {"kind": "scale_mixture", "pi": 0.25, "std1": 1.0, "std2": math.exp(-6.0)},
]
NOTES = (
    "w = mean + std * eps; std = exp(raw) for scale exp (raw is log_std), ln(1 + exp(raw)) for "
    "softplus (raw is rho). KL summed over elements, in nats. Monte Carlo: mean over draws (first "
    "axis of eps) of log q - log p, differentiated through the sample and the density; log_q and "
    "log_p with ln 2 pi. monte_carlo_torch_blue adds 1e-10 to both variances, as torch_blue does. "
    "scale_mixture: pi N(0, std1^2) + (1 - pi) N(0, std2^2), Monte Carlo only."
)


def torch_prior(prior, dtype):
    """The prior as a torch distribution."""
    scalar = lambda v: torch.tensor(v, dtype=dtype)
    if prior["kind"] == "normal":
        return td.Normal(scalar(prior["mean"]), scalar(prior["std"]))
    stds = scalar([prior["std1"], prior["std2"]])
    weights = td.Categorical(probs=scalar([prior["pi"], 1 - prior["pi"]]))
    return td.MixtureSameFamily(weights, td.Normal(torch.zeros_like(stds), stds))


def divergences(prior, scale, mean, raw, eps, dtype):
    """Values, and gradients by mean and by the raw scale parameter."""
    mean, raw = (t.to(dtype).requires_grad_() for t in (mean, raw))
    std = raw.exp() if scale == "exp" else F.softplus(raw)
    q, p = td.Normal(mean, std), torch_prior(prior, dtype)
    w = mean + std * eps.to(dtype)
    log_q, log_p = q.log_prob(w).sum(-1).mean(), p.log_prob(w).sum(-1).mean()
    terms = {"monte_carlo": log_q - log_p}
    if prior["kind"] == "normal":
        terms["analytic"] = td.kl_divergence(q, p).sum()
        # torch_blue knows exp only; its prior keeps float32 scalars, hence the assignment.
        if scale == "exp":
            blue = MeanFieldNormal()
            blue.mean, blue.log_std = p.mean, p.stddev.log()
            blue_q = blue.variational_log_prob(w, (mean, raw)).sum(-1).mean()
            terms["monte_carlo_torch_blue"] = blue_q - blue.prior_log_prob(w).sum(-1).mean()
            theirs = NormalNormalDivergence.forward(blue.mean, blue.log_std, mean, raw)
            tolerance = 1e-6 if dtype == torch.float32 else 1e-12
            close(terms["analytic"], theirs, tolerance, "analytic KL of torch_blue")
    result = {"log_q": log_q, "log_p": log_p} | terms
    for key, term in terms.items():
        by_mean, by_raw = torch.autograd.grad(term, (mean, raw), retain_graph=True)
        result |= {f"{key}_grad_mean": by_mean, f"{key}_grad_raw": by_raw}
    return result


def kl_case():
    """kl.json: 20 weights, 3 draws."""
    n, samples = 20, 3
    mean = normal(n, scale=0.5)
    eps = torch.stack([stream_normal(s, 0, n) for s in range(samples)])
    # Every fifth mean small: weights inside the narrow component of the mixture.
    mean[1::5] = dyadic(mean[1::5].numpy() / 64, 4096)
    raws = {"exp": uniform(-3.0, 0.5, n), "softplus": uniform(-3.0, 1.0, n)}
    for raw in raws.values():
        raw[:4] = torch.tensor([-4.0, -6.0, -5.0, 0.0])
    cases = []
    for scale, raw in raws.items():
        for prior in PRIORS:
            sides = [
                divergences(prior, scale, mean, raw, eps, dtype)
                for dtype in (torch.float32, torch.float64)
            ]
            cases.append({"prior": prior, "scale": scale} | both(*sides))
    return {
        "notes": NOTES,
        "samples": samples,
        "seed": SEED,
        "mean": mean,
        "log_std": raws["exp"],
        "rho": raws["softplus"],
        "eps": eps,
        "cases": cases,
    }
