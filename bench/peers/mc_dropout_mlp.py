"""The load forecast's MC-dropout MLP in PyTorch: 96 values give the next 24."""

import torch
from torch import nn

INPUTS = 96


class McDropoutMlp:
    """Network and Adam, trained step by step. With "bf16" among the flags under autocast, with
    "compile" through torch.compile."""

    def __init__(self, flags):
        assert set(flags) <= {"bf16", "compile"}, flags
        network = nn.Sequential(
            nn.Linear(INPUTS, 128), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(128, 24),
        )
        self.optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
        self.network = torch.compile(network) if "compile" in flags else network
        self.bf16 = "bf16" in flags

    def forecast(self, windows, draws):
        """The mean over draws, all in one batch."""
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            outputs = self.network(windows[:, :INPUTS].expand(draws, -1, -1))
        return outputs.float().mean(0)

    def step(self, windows, draws):
        """A training step."""
        self.optimizer.zero_grad()
        forecast = self.forecast(windows, draws)
        nn.functional.mse_loss(forecast, windows[:, INPUTS:]).backward()
        self.optimizer.step()

    @torch.no_grad()
    def squared_error(self, windows, draws):
        """Summed over windows and hours. Dropout stays on: that is what draws are."""
        return (self.forecast(windows, draws) - windows[:, INPUTS:]).square().sum()
