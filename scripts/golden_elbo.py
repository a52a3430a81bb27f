"""Two-layer networks: torch_blue's ELBO losses, and plain losses averaged over draws."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch._C import _functorch
from torch_blue import vi
from torch_blue.vi.distributions import MeanFieldNormal

from golden_common import LAYOUT, SEED, both, close, normal, stream_normal, uniform

OBJECTIVE = (
    "total = data + heat / dataset_size * kl is the loss per example: torch_blue's loss divided "
    "by dataset_size. data is not multiplied by dataset_size; kl is in nats, neither multiplied "
    "by heat nor divided by dataset_size. Gradients are those of these values; kl_monte_carlo = "
    "mean over draws of log q - log p is differentiated through the sample and the density; log_q "
    "and log_p lack ln 2 pi / 2 per weight. Only torch_blue_total_* has torch_blue's own scale, "
    "dataset_size * data + heat * kl."
)
MODULES = {"relu": nn.ReLU, "tanh": nn.Tanh}


def noise(samples, tensor, shape):
    """The noise of a tensor in every draw. Burn keeps weights as [in, out], hence the transpose."""
    size = math.prod(shape)
    draws = [stream_normal(s, tensor, size).reshape(shape[::-1]) for s in range(samples)]
    return torch.stack([draw.T.contiguous() if len(shape) == 2 else draw for draw in draws])


def network(sizes, samples, log_std):
    """Mean, log_std and noise of every weight and bias, in torch_blue's sampling order."""
    parameters = []
    for layer, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
        for kind, shape in (("weight", (fan_out, fan_in)), ("bias", (fan_out,))):
            parameters.append({
                "name": f"layer{layer}.{kind}",
                "mean": normal(*shape, scale=1 / math.sqrt(fan_in)),
                "log_std": uniform(*log_std, *shape),
                "eps": noise(samples, len(parameters), shape),
            })
    return parameters


def leaves(parameters, dtype):
    """Leaves to differentiate by: mean, log_std of every parameter, alternating."""
    return [p[k].to(dtype).requires_grad_() for p in parameters for k in ("mean", "log_std")]


def forward_by_hand(parameters, variables, inputs, activation):
    """Outputs [S, B, C] and the sampled weights of every draw."""
    dtype, outputs, weights = variables[0].dtype, [], []
    for s in range(len(parameters[0]["eps"])):
        w = [
            mean + log_std.exp() * p["eps"][s].to(dtype)
            for p, mean, log_std in zip(parameters, variables[::2], variables[1::2])
        ]
        hidden = getattr(torch, activation)(F.linear(inputs.to(dtype), w[0], w[1]))
        outputs.append(F.linear(hidden, w[2], w[3]))
        weights.append(w)
    return torch.stack(outputs), weights


def gradients(terms, variables, outputs, by_output):
    """Gradients of every term by the variables; of the terms `by_output` by the outputs too."""
    grad = lambda term, by: torch.autograd.grad(term, by, retain_graph=True)
    plain = lambda tensors: [t.as_subclass(torch.Tensor) for t in tensors]
    by_variables = {k: plain(grad(term, variables)) for k, term in terms.items()}
    return by_variables, {k: plain(grad(terms[k], outputs))[0] for k in by_output}


def with_gradients(parameters, single, double):
    """Adds gradients.<term>.{mean, log_std}[_f64] to the parameters."""
    pick = lambda tensors, i: dict(zip(("mean", "log_std"), tensors[2 * i : 2 * i + 2]))
    return [
        p | {"gradients": {k: both(pick(single[k], i), pick(double[k], i)) for k in single}}
        for i, p in enumerate(parameters)
    ]


def torch_blue_forward(model, parameters, inputs):
    """torch_blue's own sampled forward with our noise: one call per variable, inside vmap."""
    noise = iter([p["eps"].to(inputs.dtype) for p in parameters])
    original = MeanFieldNormal._normal_sample

    def given_sample(mean, std):
        level = _functorch.maybe_current_level()
        return std * _functorch._add_batch_dim(next(noise), 0, level) + mean

    MeanFieldNormal._normal_sample = staticmethod(given_sample)
    try:
        outputs = model(inputs, samples=len(parameters[0]["eps"]))
    finally:
        MeanFieldNormal._normal_sample = staticmethod(original)
    assert next(noise, None) is None
    return outputs


def terms_by_torch_blue(case, parameters, dtype):
    """Outputs, terms of the loss and their gradients, from torch_blue's modules and losses."""
    prior = MeanFieldNormal(*case["prior"])
    # The constructor keeps float32 scalars; without this its float64 would not be float64.
    prior.mean, prior.log_std = (
        torch.tensor(v, dtype=torch.float64).to(dtype)
        for v in (case["prior"][0], math.log(case["prior"][1]))
    )
    sizes, size, heat = case["sizes"], case["dataset_size"], case["heat"]
    layers = [vi.VILinear(a, b, prior=prior, dtype=dtype) for a, b in zip(sizes, sizes[1:])]
    names = [f"_{kind}_{k}" for kind in ("weight", "bias") for k in ("mean", "log_std")]
    variables = [getattr(layer, name) for layer in layers for name in names]
    with torch.no_grad():
        for variable, value in zip(variables, leaves(parameters, dtype)):
            variable.copy_(value)
    model = vi.VISequential(layers[0], MODULES[case["activation"]](), layers[1])
    predictive, targets = case["predictive"], case["targets"]
    targets = targets.to(dtype) if targets.is_floating_point() else targets

    analytic_loss = vi.AnalyticalKullbackLeiblerLoss(model, predictive, size, heat=heat)
    model.return_log_probs = True  # that loss had switched to the local reparameterisation
    outputs = torch_blue_forward(model, parameters, case["inputs"].to(dtype))
    monte_carlo = vi.KullbackLeiblerLoss(predictive, size, heat=heat)(outputs, targets)
    analytic = analytic_loss(outputs, targets)
    data = vi.KullbackLeiblerLoss(predictive, size, heat=0.0)(outputs, targets)
    log_p, log_q = outputs.log_probs.mean(dim=0)
    terms = {
        "data": data / size,
        "kl_monte_carlo": log_q - log_p,
        "kl_analytic": analytic_loss.prior_matching(),
        "total_monte_carlo": monte_carlo / size,
        "total_analytic": analytic / size,
    }
    values = terms | {
        "log_q": log_q,
        "log_p": log_p,
        "torch_blue_total_monte_carlo": monte_carlo,
        "torch_blue_total_analytic": analytic,
    }
    values = {k: v.as_subclass(torch.Tensor) for k, v in values.items()}
    grads, by_output = gradients(terms, variables, outputs, ["data"])
    return outputs.detach().as_subclass(torch.Tensor), values, grads, by_output


def terms_by_hand(case, parameters, dtype):
    """The same as `terms_by_torch_blue`, from the formulas, and details of the data term."""
    variables = leaves(parameters, dtype)
    pairs = list(zip(variables[::2], variables[1::2]))
    outputs, weights = forward_by_hand(parameters, variables, case["inputs"], case["activation"])
    (p_mean, p_std), size, heat = case["prior"], case["dataset_size"], case["heat"]

    def log_normal(w, mean, variance):
        return -0.5 * ((w - mean) ** 2 / variance + variance.log()).sum()

    p_variance = torch.tensor(p_std**2 + 1e-10, dtype=dtype)
    draws = len(weights)
    log_q = sum(
        log_normal(w, m, (2 * r).exp() + 1e-10) for ws in weights for w, (m, r) in zip(ws, pairs)
    ) / draws
    log_p = sum(log_normal(w, p_mean, p_variance) for ws in weights for w in ws) / draws
    analytic = sum(
        (math.log(p_std) - r + ((2 * r).exp() + (m - p_mean) ** 2) / (2 * p_std**2) - 0.5).sum()
        for m, r in pairs
    )
    targets = case["targets"]
    targets = targets.to(dtype) if targets.is_floating_point() else targets
    details, data = case["data_by_hand"](outputs, targets)
    terms = {
        "data": data,
        "kl_monte_carlo": log_q - log_p,
        "kl_analytic": analytic,
        "total_monte_carlo": data + heat / size * (log_q - log_p),
        "total_analytic": data + heat / size * analytic,
    }
    values = terms | {"log_q": log_q, "log_p": log_p}
    grads, by_output = gradients(terms, variables, outputs, ["data"])
    return outputs, values, grads, by_output, details


def elbo_case(samples, log_std, **case):
    """One ELBO file: torch_blue's values in both precisions, checked against ours by hand."""
    parameters = network(case["sizes"], samples, log_std)
    blue, hand = {}, {}
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
        blue[dtype] = terms_by_torch_blue(case, parameters, dtype)
        hand[dtype] = terms_by_hand(case, parameters, dtype)
        close(hand[dtype][0], blue[dtype][0], tolerance, "outputs")
        for key, value in hand[dtype][1].items():
            close(value, blue[dtype][1][key], tolerance, key)
    for ours, theirs in zip(hand[torch.float64][2].values(), blue[torch.float64][2].values()):
        for a, b in zip(ours, theirs):
            close(a, b, 1e-12, "gradient")
    close(hand[torch.float64][3]["data"], blue[torch.float64][3]["data"], 1e-12, "gradient")

    single, double = blue[torch.float32], blue[torch.float64]
    details = both(hand[torch.float32][4], hand[torch.float64][4])
    return {
        "layout": LAYOUT,
        "objective": OBJECTIVE,
        "data_term": " ".join(case["data_by_hand"].__doc__.split()),
        "samples": samples,
        "seed": SEED,
        "batch": len(case["inputs"]),
        "sizes": case["sizes"],
        "activation": case["activation"],
        "dataset_size": case["dataset_size"],
        "heat": case["heat"],
        "prior": dict(zip(("mean", "std"), case["prior"])),
        "inputs": case["inputs"],
        "targets": case["targets"],
        "values": both(single[1], double[1]),
        **both({"outputs": single[0]}, {"outputs": double[0]}),
        **details,
        "output_gradients": both(single[3], double[3]),
        "parameters": with_gradients(parameters, single[2], double[2]),
    }


def mean_probability_nll(logits, labels):
    """torch_blue's Categorical: mean_B of -ln(mean_S softmax(logits + 1e-5) + 1e-5)[label]."""
    mean = torch.softmax(logits + 1e-5, -1).mean(0)
    nll = -torch.log(mean[torch.arange(len(labels)), labels] + 1e-5)
    return {"mean_probabilities": mean, "nll_per_example": nll}, nll.mean()


def draws_gaussian_nll(outputs, targets):
    """torch_blue's MeanFieldNormal: mean_B sum_outputs ((y - m)^2 / v + ln v) / 2.

    m and v are mean and unbiased variance over draws, v with 1e-10 added; without ln 2 pi, except
    in data_with_constant.
    """
    mean = outputs.mean(0)
    variance = ((outputs - mean) ** 2).sum(0) / (len(outputs) - 1)
    v = variance + 1e-10
    nll = 0.5 * ((targets - mean) ** 2 / v + v.log())
    data = nll.mean(0).sum()
    details = {
        "predictive_mean": mean,
        "predictive_std": variance.sqrt(),
        "nll_per_element": nll,
        "data_with_constant": data + 0.5 * math.log(2 * math.pi) * targets.shape[-1],
    }
    return details, data


def expected_case(case, terms_of):
    """Plain PyTorch losses of the network of an ELBO file."""
    sides = {}
    for dtype in (torch.float32, torch.float64):
        variables = leaves(case["parameters"], dtype)
        outputs, _ = forward_by_hand(
            case["parameters"], variables, case["inputs"], case["activation"]
        )
        terms, details = terms_of(outputs, case["targets"])
        sides[dtype] = (terms | details, *gradients(terms, variables, outputs, terms))
    single, double = sides[torch.float32], sides[torch.float64]
    inputs = [{k: p[k] for k in ("name", "mean", "log_std", "eps")} for p in case["parameters"]]
    keep = ("samples", "batch", "sizes", "activation", "inputs", "targets")
    return {k: case[k] for k in keep} | {
        "values": both(single[0], double[0]),
        "outputs": case["outputs"],
        "outputs_f64": case["outputs_f64"],
        "output_gradients": both(single[2], double[2]),
        "parameters": with_gradients(inputs, single[1], double[1]),
    }


def cross_entropies(outputs, labels):
    """Mean over draws of the cross entropy."""
    per_draw = torch.stack([F.cross_entropy(o, labels) for o in outputs])
    return {"expected_cross_entropy": per_draw.mean()}, {"cross_entropy_per_draw": per_draw}


def squared_errors(outputs, targets):
    """Mean over draws of the mean squared error, and that of the mean prediction."""
    targets = targets.to(outputs.dtype)
    per_draw = torch.stack([F.mse_loss(o, targets) for o in outputs])
    mse_of_mean = F.mse_loss(outputs.mean(0), targets)
    terms = {"expected_mse": per_draw.mean(), "mse_of_mean": mse_of_mean}
    return terms, {"mse_per_draw": per_draw}
