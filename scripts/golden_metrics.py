"""Predictive metrics of given draws: classification and regression."""

import math
from statistics import NormalDist

import numpy as np
import torch
import torch.nn.functional as F

from golden_common import RNG, both, dyadic

NOTES = (
    "Natural logarithms. probabilities [S, N, C], draws [S, N]. accuracy, nll, brier and the "
    "calibration errors are those of the mean probabilities; brier: sum over classes, mean over "
    "examples. Bins (i/bins, (i+1)/bins]: ece weighs each by its share of the examples, unweighted "
    "is the mean over non-empty bins, classwise the mean over classes c of the ece of p_c against "
    "label == c. std is unbiased. crps_ensemble = mean_s|x_s - y| - sum_ij|x_i - x_j| / (2 S^2), "
    "fair: / (2 S (S - 1)). coverage: share of |y - mean| <= normal_quantile * std, per level; "
    "coverage_error: mean over levels of |coverage - level|."
)
DTYPES = (torch.float32, torch.float64)


def calibration(confidence, hit, bins, right_closed=True):
    """Weighted and unweighted mean over non-empty bins of |hit rate - mean confidence|."""
    index = (confidence * bins).ceil() - 1 if right_closed else (confidence * bins).floor()
    index = index.clamp(0, bins - 1)
    inside = [index == b for b in range(bins) if bool((index == b).any())]
    gaps = torch.stack([(hit[i].mean() - confidence[i].mean()).abs() for i in inside])
    shares = torch.stack([i.to(hit.dtype).mean() for i in inside])
    return (gaps * shares).sum(), gaps.mean()


def classification_metrics(draws, labels, bins, dtype):
    """Metrics of probabilities [S, N, C]."""
    draws = draws.to(dtype)
    mean = draws.mean(0)
    one_hot = F.one_hot(labels, mean.shape[-1]).to(dtype)
    confidence, predicted = mean.max(-1)
    hit = (predicted == labels).to(dtype)
    entropy = lambda p: torch.special.entr(p).sum(-1)
    total, expected = entropy(mean), entropy(draws).mean(0)
    ece, unweighted = calibration(confidence, hit, bins)
    classwise = [calibration(mean[:, c], one_hot[:, c], bins)[0] for c in range(mean.shape[-1])]
    return {
        "mean_probabilities": mean,
        "accuracy": hit.mean(),
        "nll": -mean.gather(-1, labels[:, None]).log().mean(),
        "brier": ((mean - one_hot) ** 2).sum(-1).mean(),
        "predictive_entropy": total,
        "expected_entropy": expected,
        "mutual_information": total - expected,
        "mean_predictive_entropy": total.mean(),
        "mean_expected_entropy": expected.mean(),
        "mean_mutual_information": (total - expected).mean(),
        "ece": ece,
        "unweighted_calibration_error": unweighted,
        "classwise_calibration_error": torch.stack(classwise).mean(),
    }


def coverage_metrics(draws, targets, levels, quantiles, dtype):
    """Coverage of the central Gaussian intervals of the draws' mean and std."""
    z = (targets - draws.mean(0)).abs() / draws.std(0)
    coverage = torch.stack([(z <= q).to(dtype).mean() for q in quantiles])
    error = (coverage - torch.tensor(levels, dtype=dtype)).abs().mean()
    return {"coverage": coverage, "coverage_error": error}


def regression_metrics(draws, targets):
    """Metrics of predictions [S, N]."""
    samples = len(draws)
    mean, std = draws.mean(0), draws.std(0)
    error = targets - mean
    z = error / std
    distance = (draws - targets).abs().mean(0)
    pairs = (draws[:, None] - draws[None]).abs().sum((0, 1))
    cdf = 0.5 * (1 + torch.erf(z / math.sqrt(2)))
    pdf = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    crps = {
        "crps_ensemble": distance - pairs / (2 * samples**2),
        "crps_ensemble_fair": distance - pairs / (2 * samples * (samples - 1)),
        "crps_gaussian": std * (z * (2 * cdf - 1) + 2 * pdf - 1 / math.sqrt(math.pi)),
    }
    return {
        "mean": mean,
        "std": std,
        **crps,
        **{f"mean_{k}": v.mean() for k, v in crps.items()},
        "rmse": (error**2).mean().sqrt(),
        "mae": error.abs().mean(),
    }


def random_probabilities(samples, n, classes):
    """Positive counts that sum to 256, over 256: exact, and normalised exactly."""
    sharp = RNG.dirichlet(np.ones(classes), size=n) * 3 + 0.3
    counts = [
        [RNG.multinomial(256 - classes, RNG.dirichlet(a)) + 1 for a in sharp]
        for _ in range(samples)
    ]
    return dyadic(np.array(counts) / 256)


def classification_case(samples=4, n=12, classes=3, bins=15):
    draws = random_probabilities(samples, n, classes)
    mean = draws.mean(0)
    labels = torch.tensor([int(RNG.choice(classes, p=p)) for p in mean.double().numpy()])
    top = mean.sort(-1, descending=True).values
    assert bool((top[:, 0] > top[:, 1]).all()), "a tie would leave the accuracy undefined"
    sides = [classification_metrics(draws, labels, bins, dtype) for dtype in DTYPES]
    given = {"samples": samples, "bins": bins, "probabilities": draws, "labels": labels}
    return given | both(*sides)


def bin_edges_case(bins=4):
    """Confidences exactly on the edges of bins: tells which side is closed."""
    high = torch.tensor([0.5, 0.625, 0.75, 0.75, 0.875, 1.0])
    mean = torch.stack([high, (1 - high) * 0.75, (1 - high) * 0.25], -1)
    labels = torch.tensor([1, 0, 0, 2, 0, 0])
    right, left = (calibration(high, (labels == 0).float(), bins, side) for side in (True, False))
    assert right[0] != left[0] and right[1] != left[1]
    sides = [classification_metrics(mean[None], labels, bins, dtype) for dtype in DTYPES]
    keep = ("ece", "unweighted_calibration_error", "classwise_calibration_error")
    given = {"bins": bins, "mean_probabilities": mean, "labels": labels}
    return given | both(*({k: side[k] for k in keep} for side in sides))


def regression_case(samples=8, n=10):
    center, spread = RNG.normal(size=n), RNG.uniform(0.3, 1.5, size=n)
    draws = dyadic(center + spread * RNG.normal(size=(samples, n)))
    targets = dyadic(center + spread * RNG.normal(size=n))
    case = {"samples": samples, "draws": draws, "targets": targets}
    case |= both(*(regression_metrics(draws.to(t), targets.to(t)) for t in DTYPES))
    grids = {"coverage_50_90": [0.5, 0.9], "coverage_deciles": [i / 10 for i in range(1, 10)]}
    for name, levels in grids.items():
        quantiles = [NormalDist().inv_cdf(0.5 + level / 2) for level in levels]
        sides = [
            coverage_metrics(draws.to(t), targets.to(t), levels, quantiles, t) for t in DTYPES
        ]
        case[name] = {"levels": levels, "normal_quantiles": quantiles} | both(*sides)
    return case


def metrics_case():
    """metrics.json."""
    return {
        "notes": NOTES,
        "classification": classification_case(),
        "bin_edges": bin_edges_case(),
        "regression": regression_case(),
    }
