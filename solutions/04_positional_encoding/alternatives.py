"""Other right answers to the exercises of lesson 04. Every check and every hidden test accepts all of them."""

import math

import torch
from torch import nn

from attention_course import device
from attention_course.authoring import alternatives_of

# 4.1 equivariance_gap: the models of the lesson once more, so that these answers can look them up by name ------------

_W_q, _W_k = torch.zeros(6, 4), torch.zeros(6, 4)
for _channel, (_who, _what) in enumerate(((2, 1), (3, 5), (4, 0), (0, 2))):
    _W_q[_who, _channel], _W_k[_what, _channel] = 6.0, 1.0


def _attention(x):
    return torch.softmax((x @ _W_q.to(x)) @ (x @ _W_k.to(x)).mT / 2, dim=-1) @ x


_MODELS = {
    "attention": _attention,
    "each alone": torch.tanh,
    "running mean": lambda x: torch.cumsum(x, 1) / torch.arange(1, x.shape[1] + 1).to(x)[:, None],
    "left neighbour": lambda x: torch.cat([x[:, -1:], x[:, :-1]], dim=1),
}


right = alternatives_of("equivariance_gap")


@right
def gap_index_select(model, x, order):
    f = _MODELS.get(model, model)
    return float((f(x.index_select(1, order)) - f(x).index_select(1, order)).abs().amax())


@right
def gap_by_matrix(model, x, order):
    f = _MODELS.get(model, model)
    shuffle = torch.eye(len(order)).to(x)[order]
    return torch.linalg.vector_norm(f(shuffle @ x) - shuffle @ f(x), ord=math.inf).item()


@right
def gap_put_back(model, x, order):
    f = _MODELS.get(model, model)
    put_back = f(x[:, order])[:, torch.argsort(order)]
    return max(abs(number) for number in (put_back - f(x)).flatten().tolist())


@right
def gap_as_a_tensor(model, x, order):
    f = _MODELS.get(model, model)
    return torch.max(torch.abs(f(x[:, order]) - f(x)[:, order, :]))


# 4.2 sinusoidal -----------------------------------------------------------------------------------------------------

right = alternatives_of("sinusoidal")


@right
def sinusoidal_loop(T, d):
    table = torch.empty(T, d, device=device.pick())
    for p in range(T):
        for c in range(d):
            angle = p / 10000 ** ((c - c % 2) / d)
            table[p, c] = math.cos(angle) if c % 2 else math.sin(angle)
    return table


@right
def sinusoidal_by_exponential(T, d):
    position = torch.arange(T, dtype=torch.float32, device=device.pick()).unsqueeze(1)
    rates = torch.exp(torch.arange(0, d, 2, device=device.pick()).float() * (-math.log(10000.0) / d))
    table = torch.zeros(T, d, device=device.pick())
    table[:, 0::2] = torch.sin(position * rates)
    table[:, 1::2] = torch.cos(position * rates)[:, : table[:, 1::2].shape[1]]
    return table


@right
def sinusoidal_stacked_and_cut(T, d):
    pairs = (d + 1) // 2
    rates = 1 / 10000 ** (2 * torch.arange(pairs, device=device.pick()) / d)
    angles = torch.outer(torch.arange(T, device=device.pick()).float(), rates)
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(T, 2 * pairs)[:, :d]


@right
def sinusoidal_by_phase(T, d):
    column = torch.arange(d, device=device.pick())
    angles = torch.arange(T, device=device.pick())[:, None] * 10000.0 ** (-(column - column % 2) / d)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


# 4.3 shift_matrix ---------------------------------------------------------------------------------------------------


def _angles(n, d):
    return [n * 10000 ** (-2 * i / d) for i in range(d // 2)]


right = alternatives_of("shift_matrix")


@right
def shift_blocks(n, d):
    blocks = [torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]) for a in _angles(n, d)]
    return torch.block_diag(*blocks).to(device.pick())


@right
def shift_one_entry_at_a_time(n, d):
    M = torch.zeros(d, d, device=device.pick())
    for i, a in enumerate(_angles(n, d)):
        M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = math.cos(a)
        M[2 * i, 2 * i + 1] = math.sin(a)
        M[2 * i + 1, 2 * i] = -math.sin(a)
    return M


@right
def shift_by_exponential(n, d):
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i, a in enumerate(_angles(n, d)):
        generator[2 * i, 2 * i + 1], generator[2 * i + 1, 2 * i] = a, -a
    return torch.matrix_exp(generator).float().to(device.pick())


@right
def shift_three_diagonals(n, d):
    angles = torch.tensor(_angles(n, d), device=device.pick())
    beside = torch.stack([angles.sin(), torch.zeros_like(angles)], dim=1).flatten()[:-1]
    cosines = angles.cos().repeat_interleave(2)
    return torch.diag(cosines) + torch.diag(beside, 1) - torch.diag(beside, -1)


# 4.4 LearnedPositions -----------------------------------------------------------------------------------------------


class _Learned(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = nn.Embedding(max_length, d_model)


right = alternatives_of("LearnedPositions")


@right
class LearnedBySlice(_Learned):
    def forward(self, x):
        return x + self.table.weight[: x.shape[1]]


@right
class LearnedWithBatch(_Learned):
    def forward(self, x):
        places = torch.arange(x.size(1), device=x.device).expand(x.size(0), -1)  # (B, T)
        return x + self.table(places)


@right
class LearnedWithNumbers(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.register_buffer("numbers", torch.arange(max_length), persistent=False)
        self.table = nn.Embedding(num_embeddings=max_length, embedding_dim=d_model)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, tokens):
        if tokens.shape[1] > self.table.num_embeddings:
            raise ValueError("the sentence is longer than the table")
        return self.table(self.numbers[: tokens.shape[1]]) + tokens


# 4.5 rope -----------------------------------------------------------------------------------------------------------

right = alternatives_of("rope")


@right
def rope_complex(x, positions):
    d = x.shape[-1]
    rates = 10000.0 ** (-torch.arange(0, d, 2, device=x.device, dtype=x.dtype) / d)
    angles = positions[:, None] * rates
    pairs = torch.view_as_complex(x.unflatten(-1, (d // 2, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@right
def rope_by_partner(x, positions):
    d = x.shape[-1]
    rates = (10000.0 ** (-torch.arange(0, d, 2, device=x.device) / d)).to(x).repeat_interleave(2)
    angles = positions.to(x)[:, None] * rates  # (T, d)
    partner = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * angles.cos() + partner * angles.sin()


@right
def rope_pair_by_pair(x, positions):
    d, columns = x.shape[-1], []
    for i in range(d // 2):
        angle = positions.to(x) * 10000.0 ** (-2 * i / d)
        a, b = x[..., 2 * i], x[..., 2 * i + 1]
        columns += [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    return torch.stack(columns, dim=-1)


@right
def rope_filled_in(x, positions):
    rates = torch.exp(-math.log(10000.0) * torch.arange(0, x.shape[-1], 2, device=x.device).to(x) / x.shape[-1])
    angles = torch.outer(positions.to(x), rates)
    turned = torch.empty_like(x)
    turned[..., ::2] = x[..., ::2] * angles.cos() - x[..., 1::2] * angles.sin()
    turned[..., 1::2] = x[..., ::2] * angles.sin() + x[..., 1::2] * angles.cos()
    return turned


# 4.6 breaking_slope -------------------------------------------------------------------------------------------------

right = alternatives_of("breaking_slope")


@right
def slope_early_return(lead, place, a, b):
    near, far = abs(place - a), abs(place - b)
    if far <= near:
        return float("inf")
    return lead / (far - near)


@right
def slope_of_tensors(lead, place, a, b):
    near, far = (torch.tensor(float(x - place)).abs() for x in (a, b))
    return torch.where(far > near, lead / (far - near).clamp(min=1e-9), torch.tensor(torch.inf))


@right
def slope_of_two_lines(lead, place, a, b):
    """Both scores are straight lines in the slope; where do they meet?"""
    falls_a, falls_b = -abs(a - place), -abs(b - place)
    meet = lead / (falls_a - falls_b) if falls_a != falls_b else math.inf
    return meet if meet > 0 else math.inf


# 4.7 counterexample -------------------------------------------------------------------------------------------------

right = alternatives_of("counterexample")


@right
def counterexample_random():
    return torch.randn(2, 5, 8), torch.arange(5)


@right
def counterexample_one_token():
    return torch.zeros(1, 1, 6), torch.tensor([7])


@right
def counterexample_far_away():
    return [torch.ones(1, 2, 4), torch.tensor([300.0, 500.0])]


# 4.8 repaired_positions ---------------------------------------------------------------------------------------------

right = alternatives_of("repaired_positions")


@right
def repaired_counts_the_hands(x, positions):
    i = torch.arange(x.shape[-1] // 2, device=x.device)
    angles = positions[:, None] * 10000.0 ** (-2 * i / x.shape[-1])
    return x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


@right
def repaired_by_exponential(x, positions):
    rates = torch.exp(-math.log(10000.0) / x.shape[-1] * torch.arange(0, x.shape[-1], 2, device=x.device).to(x))
    angles = positions.unsqueeze(1) * rates
    table = torch.zeros_like(x[0])
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return x + table


@right
def repaired_by_logspace(x, positions):
    angles = positions[:, None] * torch.logspace(0, -4, x.shape[-1] // 2 + 1, device=x.device, dtype=x.dtype)[:-1]
    return x + torch.stack([angles.sin(), angles.cos()], -1).reshape(len(positions), -1)


@right
def repaired_by_base(x, positions):
    i = torch.arange(0, x.shape[-1], 2, device=x.device)
    angles = positions[:, None] * 100.0 ** (-2 * i / x.shape[-1])  # 100 is the root of 10000
    return x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
