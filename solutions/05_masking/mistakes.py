"""Wrong answers to the exercises of lesson 05, each with what its author needs to read."""

import torch
from torch.nn import functional as F

from attention_course.authoring import mistakes_of

# 5.1 padding_mask ---------------------------------------------------------------------------------------------------

wrong = mistakes_of("padding_mask")


@wrong(
    "the opposite convention, True for padding,",
    "In this course True means keep: a place is kept if its number is below the length.",
)
def padding_inverted(lengths, Tk):
    return torch.arange(Tk, device=lengths.device) >= lengths[:, None, None, None]


@wrong(
    "comparing with <=",
    "It keeps one place of padding in each sentence. The places of a sentence of length 3 are 0, 1 and 2.",
)
def padding_one_too_many(lengths, Tk):
    return torch.arange(Tk, device=lengths.device) <= lengths[:, None, None, None]


@wrong(
    "numbering the places from 1 and comparing with <",
    "It hides the last token of each sentence. torch.arange(Tk) begins at 0.",
)
def padding_one_too_few(lengths, Tk):
    return torch.arange(1, Tk + 1, device=lengths.device) < lengths[:, None, None, None]


@wrong(
    "a mask of shape (B, Tk)",
    "Beside scores of shape (B, H, Tq, Tk) its B would stand under Tq. Insert two axes of length 1 between B and Tk.",
)
def padding_two_axes(lengths, Tk):
    return torch.arange(Tk, device=lengths.device) < lengths[:, None]


@wrong(
    "a mask of shape (B, 1, Tk)",
    "Beside scores of shape (B, H, Tq, Tk) its B would stand under H. One more axis of length 1.",
)
def padding_three_axes(lengths, Tk):
    return torch.arange(Tk, device=lengths.device) < lengths[:, None, None]


@wrong(
    "a mask of shape (B, 1, Tk, 1)",
    "That hides queries. Padding must not be looked *at*: Tk belongs on the last axis, that of the keys.",
)
def padding_hides_queries(lengths, Tk):
    return (torch.arange(Tk, device=lengths.device) < lengths[:, None])[:, None, :, None]


@wrong(
    "numbers in place of booleans",
    "A comparison gives booleans, and needs no conversion. A mask of numbers means something else to PyTorch.",
)
def padding_in_numbers(lengths, Tk):
    return (torch.arange(Tk, device=lengths.device) < lengths[:, None, None, None]).float()


@wrong(
    "hiding the front of each sentence", "The padding follows the tokens: the *first* places of a sentence are kept."
)
def padding_in_front(lengths, Tk):
    return torch.arange(Tk, device=lengths.device) >= Tk - lengths[:, None, None, None]


@wrong(
    "the length of the longest sentence for all of them",
    "Each sentence has a length of its own: compare the places with lengths of shape (B, 1, 1, 1).",
)
def padding_of_the_longest(lengths, Tk):
    places = torch.arange(Tk, device=lengths.device) < lengths.max()
    return places.expand(len(lengths), 1, 1, Tk)


@wrong(
    "as many places as the longest sentence has tokens", "A batch may be wider than that. The number of places is Tk."
)
def padding_ignores_width(lengths, Tk):
    return torch.arange(int(lengths.max()), device=lengths.device) < lengths[:, None, None, None]


# 5.2 causal_mask ----------------------------------------------------------------------------------------------------


def _ones(scores):
    return torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)


def _offset(scores):
    return scores.shape[-1] - scores.shape[-2]


wrong = mistakes_of("causal_mask")


@wrong(
    "a triangle whose corner is at the top left",
    "It is right for Tq = Tk alone. The queries are the *last* of the places, so the corner is at the bottom right: "
    "diagonal Tk - Tq.",
)
def causal_top_left(scores):
    return _ones(scores).tril()


@wrong(
    "hiding the query's own token as well",
    "A query may look at itself, and the first one has nothing else. The diagonal is kept.",
)
def causal_without_itself(scores):
    return _ones(scores).tril(_offset(scores) - 1)


@wrong("keeping one token of the future", "The next token is the answer. The diagonal is Tk - Tq, not one more.")
def causal_leaks_one(scores):
    return _ones(scores).tril(_offset(scores) + 1)


@wrong("the opposite convention, True for the future,", "In this course True means keep: past and present are True.")
def causal_inverted(scores):
    return ~_ones(scores).tril(_offset(scores))


@wrong(
    "keeping the future and hiding the past",
    "triu keeps what lies above the diagonal; there the keys come after the query. tril keeps the other side.",
)
def causal_upper(scores):
    return _ones(scores).triu(_offset(scores))


@wrong(
    "a diagonal of Tq - Tk",
    "With more keys than queries the triangle has to move to the right, and a positive number does that: Tk - Tq.",
)
def causal_wrong_sign(scores):
    return _ones(scores).tril(-_offset(scores))


@wrong(
    "ones and zeros as numbers",
    "Make the tensor of ones with dtype=torch.bool. A mask of numbers means something else to PyTorch.",
)
def causal_in_numbers(scores):
    return torch.ones(scores.shape[-2:], device=scores.device).tril(_offset(scores))


@wrong(
    "a mask of 0 and minus infinity to be added",
    "That is another convention. Here a mask is boolean, True = keep, and masked_softmax does the rest.",
)
def causal_additive(scores):
    return torch.zeros(scores.shape[-2:], device=scores.device).masked_fill(
        ~_ones(scores).tril(_offset(scores)), -torch.inf
    )


@wrong(
    "reading Tq and Tk off the first two axes of the scores",
    "These are B and H. The last two, scores.shape[-2:], are Tq and Tk.",
)
def causal_of_batch_and_heads(scores):
    Tq, Tk = scores.shape[:2]
    return torch.ones(Tq, Tk, dtype=torch.bool, device=scores.device).tril(Tk - Tq)


@wrong(
    "the lower triangle of the scores, as booleans",
    "A score of 0 turns into False there. The scores lend their shape and device, nothing else: begin with ones.",
)
def causal_of_the_scores(scores):
    return scores[0, 0].tril(_offset(scores)).bool()


@wrong("a mask with queries and keys exchanged", "Rows are queries, columns are keys: the shape is (Tq, Tk).")
def causal_exchanged(scores):
    return _ones(scores).tril(_offset(scores)).T


@wrong(
    "the scores themselves with their future cut off",
    "Return the mask alone, booleans of shape (Tq, Tk). The scores lend their shape and device, nothing else.",
)
def causal_masks_the_scores(scores):
    return scores.masked_fill(~_ones(scores).tril(_offset(scores)), -torch.inf)


@wrong(
    "multiplying a triangle of ones by minus infinity",
    "0 times infinity is NaN, so that all that should be kept is NaN. And the mask should be boolean.",
)
def causal_times_infinity(scores):
    return torch.triu(torch.ones(scores.shape[-2:], device=scores.device), _offset(scores) + 1) * -torch.inf


# 5.3 combine --------------------------------------------------------------------------------------------------------


def _present(masks):
    return [m for m in masks if m is not None]


wrong = mistakes_of("combine")


@wrong("a logical or", "It keeps a key as soon as one mask keeps it (so does + of booleans). All have a veto: and, &.")
def combine_or(*masks):
    both = _present(masks)[0]
    for mask in _present(masks)[1:]:
        both = both | mask
    return both


@wrong("counting the masks that keep a key", "A key is kept if all of them keep it, and a mask is boolean: &.")
def combine_counts(*masks):
    total = _present(masks)[0].int()
    for mask in _present(masks)[1:]:
        total = total + mask
    return total


@wrong("the first mask alone", "All of the masks count. (A return inside a loop ends it in its first turn.)")
def combine_first(*masks):
    return _present(masks)[0]


@wrong("the last mask alone", "All of the masks count: each turn of a loop needs what the turns before it have found.")
def combine_last(*masks):
    return _present(masks)[-1]


@wrong("the first two masks alone", "There may be one, or three, or more: loop over all of them.")
def combine_two(*masks):
    present = _present(masks)
    return present[0] & present[1] if len(present) > 1 else present[0]


@wrong("a key that exactly one mask keeps", "^ is 'one or the other but not both'. A key is kept if both keep it: &.")
def combine_exclusive(*masks):
    both = _present(masks)[0]
    for mask in _present(masks)[1:]:
        both = both ^ mask
    return both


@wrong("keeping a key where the masks agree", "Two masks also agree where both hide a key. Use & in place of ==.")
def combine_agreement(*masks):
    both = _present(masks)[0]
    for mask in _present(masks)[1:]:
        both = both == mask
    return both


@wrong("turning the result around", "What all of the masks keep should be True, and the rest False.")
def combine_inverted(*masks):
    both = _present(masks)[0]
    for mask in _present(masks)[1:]:
        both = both & mask
    return ~both


@wrong("an operation with None", "None stands for 'no restriction'. Leave it out before you combine the others.")
def combine_trips_over_none(*masks):
    both = masks[0]
    for mask in masks[1:]:
        both = both & mask
    return both


@wrong(
    "writing the result into the first mask",
    "`&=` changes the caller's mask (or fails, where that is too small to broadcast). Write a = a & b, which makes "
    "a new tensor.",
)
def combine_in_place(*masks):
    both = _present(masks)[0]
    for mask in _present(masks)[1:]:
        both &= mask
    return both


@wrong("a product of numbers", "The right places are kept, but a mask is boolean, and & of booleans is boolean too.")
def combine_in_numbers(*masks):
    both = _present(masks)[0].float()
    for mask in _present(masks)[1:]:
        both = both * mask.float()
    return both


# 5.4 masked_softmax: these are also what a learner's own test (5.7) is judged by -----------------------------------


def _lowest(scores):
    return torch.finfo(scores.dtype).min


wrong = mistakes_of("masked_softmax")


@wrong(
    "multiplying the scores by the mask",
    "A hidden score becomes 0, which is a score like any other, since e^0 = 1. Fill it with something very low.",
)
def masked_multiplies(scores, mask):
    return torch.softmax(scores * mask, dim=-1)


@wrong(
    "setting weights to 0 after an ordinary softmax",
    "What the hidden keys had is lost, and the rest no longer sums to 1. Hide before softmax.",
)
def masked_too_late(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


@wrong(
    "hiding after softmax and dividing by what is left",
    "A large hidden score makes all the kept weights underflow, a NaN spoils its row, and a row with nothing to see "
    "is 0/0. Fill before softmax.",
)
def masked_renormalised(scores, mask):
    weights = torch.softmax(scores, dim=-1) * mask
    return weights / weights.sum(dim=-1, keepdim=True)


@wrong(
    "filling with minus infinity and nothing else",
    "A row with nothing to see becomes 0/0 = NaN. Fill with the lowest finite number, and set hidden weights to 0.",
)
def masked_infinity(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)


@wrong(
    "leaving out the last step",
    "In a row with nothing to see all scores are equally low, and each key gets 1/Tk. Set the hidden weights to 0.",
)
def masked_without_last_step(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, _lowest(scores)), dim=-1)


@wrong(
    "filling with -1e9",
    "In float16 there is no such number, and in float32 a kept score may be lower. Ask the dtype for its lowest: "
    "torch.finfo(scores.dtype).min.",
)
def masked_billion(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1).masked_fill(~mask, 0.0)


@wrong(
    "filling with -1e9 and leaving out the last step",
    "Two things: in float16 there is no such number, and a row with nothing to see gets 1/Tk for each key "
    "in place of 0.",
)
def masked_billion_without_last_step(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1)


@wrong(
    "filling with -100",
    "Kept scores may lie lower than that, and then the hidden ones win. Ask the dtype for its lowest number.",
)
def masked_hundred(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -100.0), dim=-1).masked_fill(~mask, 0.0)


@wrong(
    "filling with -10000",
    "float16 has room for kept scores as low as -65504, and where they lie below -10000 the hidden ones win. Ask the "
    "dtype for its lowest number.",
)
def masked_ten_thousand(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e4), dim=-1).masked_fill(~mask, 0.0)


def _by_powers(scores, mask, top):
    """Powers of what is kept, after subtracting ``top``, over their sum."""
    powers = torch.exp(scores.masked_fill(~mask, _lowest(scores)) - top).masked_fill(~mask, 0.0)
    total = powers.sum(dim=-1, keepdim=True)
    return powers / total.masked_fill(total == 0, 1.0)


@wrong(
    "subtracting one maximum for the whole tensor",
    "A row that lies far below the largest score of all becomes e to a very low number, which is 0, in every place. "
    "Each row has a maximum of its own, as in torch.softmax(..., dim=-1).",
)
def masked_one_maximum(scores, mask):
    return _by_powers(scores, mask, scores.masked_fill(~mask, _lowest(scores)).max())


@wrong(
    "a maximum that is taken over the hidden scores too",
    "Where a hidden score is large, all that is kept becomes e to a very low number, which is 0. Fill first, then take "
    "the maximum.",
)
def masked_maximum_of_all(scores, mask):
    return _by_powers(scores, mask, scores.amax(dim=-1, keepdim=True))


@wrong(
    "the opposite convention, hiding what is True,",
    "masked_fill replaces where its condition is True, so the condition is ~mask: what is *not* kept.",
)
def masked_inverted(scores, mask):
    weights = torch.softmax(scores.masked_fill(mask, _lowest(scores)), dim=-1)
    return weights.masked_fill(mask, 0.0)


@wrong(
    "adding the mask times minus infinity",
    "For what is kept that is 0 times infinity, which is NaN. Replace hidden scores; do not add to them.",
)
def masked_times_infinity(scores, mask):
    return torch.softmax(scores + (~mask).to(scores.dtype) * -torch.inf, dim=-1)


@wrong(
    "adding a very low number to the hidden scores",
    "NaN plus a number is NaN, and an infinite score stays infinite. Replace hidden scores with masked_fill.",
)
def masked_adds(scores, mask):
    low = torch.zeros_like(scores).masked_fill(~mask, _lowest(scores))
    return torch.softmax(scores + low, dim=-1).masked_fill(~mask, 0.0)


@wrong(
    "adding minus infinity and turning NaN into 0 afterwards",
    "A NaN under the mask survives the addition, and its whole row is wiped out, kept keys too. The gradients are NaN "
    "as well. Replace hidden scores; then no NaN arises.",
)
def masked_hides_nan(scores, mask):
    low = torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    return torch.nan_to_num(torch.softmax(scores + low, dim=-1))


@wrong("a softmax over the queries", "Each *query's* weights sum to 1, so softmax runs over the keys: dim=-1.")
def masked_over_queries(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, _lowest(scores)), dim=-2)
    return weights.masked_fill(~mask, 0.0)


@wrong(
    "filling in place",
    "masked_fill_ with an underscore writes into the caller's scores. Without it, it makes a new tensor.",
)
def masked_in_place(scores, mask):
    weights = torch.softmax(scores.masked_fill_(~mask, _lowest(scores)), dim=-1)
    return weights.masked_fill(~mask, 0.0)


@wrong(
    "computing in 32 bits whatever comes in",
    "Weights have the dtype of the scores: no detour over another one, and the lowest number of their own.",
)
def masked_to_float32(scores, mask):
    weights = torch.softmax(scores.float().masked_fill(~mask, torch.finfo(torch.float32).min), dim=-1)
    return weights.masked_fill(~mask, 0.0)


@wrong(
    "wiping out every row in which anything is hidden",
    "A row is 0 only if it keeps *nothing*: mask.any(...) asks for that, mask.all(...) does not.",
)
def masked_all_for_any(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, _lowest(scores)), dim=-1)
    return weights.masked_fill(~mask.all(dim=-1, keepdim=True), 0.0)


@wrong(
    "picking the hidden scores out by index",
    "x[~mask] = ... wants a mask of the same shape as x, while masks are smaller and broadcast. masked_fill does it.",
)
def masked_by_index(scores, mask):
    filled = scores.clone()
    filled[~mask] = _lowest(scores)
    weights = torch.softmax(filled, dim=-1)
    weights[~mask] = 0.0
    return weights


# 5.5 sliding_window_mask --------------------------------------------------------------------------------------------


def _distance(scores):
    Tq, Tk = scores.shape[-2:]
    places = torch.arange(Tk, device=scores.device)
    return places[Tk - Tq :, None] - places


wrong = mistakes_of("sliding_window_mask")


@wrong(
    "a window that is one token too long",
    "The query itself is one of the tokens: the distance is less than window, not equal to it.",
)
def window_too_long(scores, window):
    return (_distance(scores) >= 0) & (_distance(scores) <= window)


@wrong(
    "a window that leaves the query's own token out", "The token itself belongs to its window: a distance of 0 is kept."
)
def window_without_itself(scores, window):
    return (_distance(scores) > 0) & (_distance(scores) <= window)


@wrong("a window on both sides", "It reaches into the future. The distance from key to query must be at least 0.")
def window_on_both_sides(scores, window):
    return _distance(scores).abs() < window


@wrong("leaving out the causal half", "Every key after the query is kept as well. Join both conditions with &.")
def window_sees_the_future(scores, window):
    return _distance(scores) < window


@wrong("a causal mask without a window", "The distant past is to be hidden too: where the distance is window or more.")
def window_forgotten(scores, window):
    return _distance(scores) >= 0


@wrong(
    "counting the queries from place 0",
    "The queries are the *last* Tq of the Tk places: query i stands at place i + Tk - Tq.",
)
def window_without_offset(scores, window):
    Tq, Tk = scores.shape[-2:]
    distance = torch.arange(Tq, device=scores.device)[:, None] - torch.arange(Tk, device=scores.device)
    return (distance >= 0) & (distance < window)


@wrong("the opposite convention, True for what is hidden,", "In this course True means keep.")
def window_inverted(scores, window):
    return ~((_distance(scores) >= 0) & (_distance(scores) < window))


@wrong(
    "a slice that starts below 0",
    "Python counts a negative start from the end, so that rows come out empty. A slice starts at max(0, ...).",
)
def window_wraps(scores, window):
    Tq, Tk = scores.shape[-2:]
    mask = torch.zeros(Tq, Tk, dtype=torch.bool, device=scores.device)
    for i in range(Tq):
        place = i + Tk - Tq
        mask[i, place - window + 1 : place + 1] = True
    return mask


@wrong("cutting the text into blocks", "The window *slides*: each query has its own, which ends at the query.")
def window_in_blocks(scores, window):
    Tq, Tk = scores.shape[-2:]
    places = torch.arange(Tk, device=scores.device)
    same = places[Tk - Tq :, None] // window == places // window
    return same & (_distance(scores) >= 0)


@wrong(
    "the first tokens of the text in place of the last",
    "The window lies just before the query: compare the *distance* with window, not the key's place.",
)
def window_at_the_beginning(scores, window):
    keys = torch.arange(scores.shape[-1], device=scores.device)
    return (_distance(scores) >= 0) & (keys < window)


@wrong(
    "keeping what lies behind the window",
    "The second condition is turned around: near keys are kept, distant ones hidden.",
)
def window_keeps_the_distant(scores, window):
    return _distance(scores) >= window


@wrong(
    "numbers in place of booleans",
    "The right places are kept, but a mask is boolean, and comparisons joined by & are boolean too.",
)
def window_in_numbers(scores, window):
    return ((_distance(scores) >= 0) & (_distance(scores) < window)).float()


@wrong(
    ".triu(diagonal=1 - window)",
    "It is right for Tq = Tk alone. With more keys than queries both edges of the band move right by Tk - Tq.",
)
def window_edge_left_behind(scores, window):
    return _ones(scores).tril(_offset(scores)).triu(1 - window)


# 5.6 to_torch_mha ---------------------------------------------------------------------------------------------------

wrong = mistakes_of("to_torch_mha")


@wrong(
    "a mask that is folded but not turned around",
    "For nn.MultiheadAttention True means hide. Without ~ the model reads just what it should not.",
)
def mha_not_turned(mask, shape):
    B, H, Tq, Tk = shape
    return mask.expand(B, H, Tq, Tk).reshape(B * H, Tq, Tk)


@wrong(
    "the examples of the first head first",
    "Head h of example b stands at b * H + h: the heads of an example stay together. "
    "Fold the axes in their order, B, H.",
)
def mha_heads_first(mask, shape):
    B, H, Tq, Tk = shape
    return (~mask.expand(B, H, Tq, Tk)).transpose(0, 1).reshape(B * H, Tq, Tk)


@wrong(
    "repeating the whole batch once per head",
    "That puts example 0, example 1, ... behind each other for every head, and takes one head's mask for all. "
    "Expand to (B, H, Tq, Tk), then reshape.",
)
def mha_repeats_the_batch(mask, shape):
    B, H, Tq, Tk = shape
    return ~mask.expand(B, H, Tq, Tk)[:, 0].repeat(H, 1, 1)


@wrong("a mask with all four axes", "nn.MultiheadAttention wants batch and heads folded into one axis of length B * H.")
def mha_four_axes(mask, shape):
    return ~mask.expand(*shape)


@wrong(
    "folding before stretching",
    "An axis of length 1 has to be stretched first; a mask that broadcasts holds fewer numbers than the full shape.",
)
def mha_without_expand(mask, shape):
    B, H, Tq, Tk = shape
    return (~mask).reshape(B * H, Tq, Tk)


@wrong(
    "the first head's mask for each example",
    "Heads may have masks of their own, and the first axis should have the length B * H.",
)
def mha_one_head(mask, shape):
    return ~mask.expand(*shape)[:, 0]


@wrong("the first head's mask for all heads", "Heads may have masks of their own: expand keeps them apart.")
def mha_one_head_for_all(mask, shape):
    B, H, Tq, Tk = shape
    return ~mask.expand(B, H, Tq, Tk)[:, :1].expand(B, H, Tq, Tk).reshape(B * H, Tq, Tk)


@wrong(
    "a mask of 0 and minus infinity to be added",
    "nn.MultiheadAttention would take that too. Asked for are booleans: turn them around and fold them.",
)
def mha_additive(mask, shape):
    B, H, Tq, Tk = shape
    return torch.zeros(B * H, Tq, Tk, device=mask.device).masked_fill(
        ~mask.expand(B, H, Tq, Tk).reshape(B * H, Tq, Tk), -torch.inf
    )


@wrong(
    "folding heads and queries together",
    "reshape keeps the order of the numbers, so the axes must stand as B, H, Tq, Tk when it cuts them anew.",
)
def mha_mixes_heads_and_queries(mask, shape):
    B, H, Tq, Tk = shape
    return (~mask.expand(B, H, Tq, Tk)).transpose(1, 2).reshape(B * H, Tq, Tk)


@wrong("exchanging queries and keys", "Rows are queries there too: the last two axes stay as they are.")
def mha_exchanged(mask, shape):
    B, H, Tq, Tk = shape
    return (~mask.expand(B, H, Tq, Tk)).reshape(B * H, Tq, Tk).transpose(1, 2)


@wrong(
    "a key_padding_mask",
    "That one cannot say anything about queries or heads. The attn_mask has the shape (B * H, Tq, Tk).",
)
def mha_padding_only(mask, shape):
    return ~mask.expand(*shape).any(dim=2).any(dim=1)


@wrong(
    ".repeat(H, 1, 1, 1) of the mask",
    "It sets the examples in the wrong order, and of a mask that has H heads already it makes too many numbers to "
    "reshape. expand stretches only axes of length 1, and adds the missing ones.",
)
def mha_repeats_along_the_batch(mask, shape):
    B, H, Tq, Tk = shape
    return (~mask).repeat(H, 1, 1, 1).reshape(B * H, Tq, Tk)


@wrong(
    "repeating each example's mask H times",
    "The order is right, but a mask may have H heads already, or no axis for them. expand stretches only axes of "
    "length 1, and adds the missing ones.",
)
def mha_repeats_each_example(mask, shape):
    B, H, Tq, Tk = shape
    return (~mask).repeat_interleave(H, dim=0).reshape(B * H, Tq, Tk)


@wrong(
    "expanding and then repeating",
    "After expand the heads are there. Repeating makes H times as many numbers as B * H, Tq and Tk have room for.",
)
def mha_expands_and_repeats(mask, shape):
    B, H, Tq, Tk = shape
    return (~mask.expand(B, H, Tq, Tk)).repeat(H, 1, 1, 1).reshape(B * H, Tq, Tk)


# 5.7 test_masked_softmax --------------------------------------------------------------------------------------------

_T, _F = True, False


def _weights(scores, mask):
    """What a right implementation gives."""
    return torch.softmax(scores.masked_fill(~mask, _lowest(scores)), dim=-1).masked_fill(~mask, 0.0)


wrong = mistakes_of("test_masked_softmax")


@wrong("a test that prints", says="it lets 3 of 3 wrong implementations through")
def test_prints(implementation):
    scores, mask = torch.tensor([[0.0, 1.0, 2.0]] * 2), torch.tensor([[_T, _T, _F], [_F, _F, _F]])
    torch.allclose(implementation(scores, mask), _weights(scores, mask))


@wrong("a test that returns its verdict", says="it lets 3 of 3 wrong implementations through")
def test_returns(implementation):
    scores, mask = torch.tensor([[0.0, 1.0, 2.0]] * 2), torch.tensor([[_T, _T, _F], [_F, _F, _F]])
    return torch.allclose(implementation(scores, mask), _weights(scores, mask))


@wrong("a test of the shape", says="it lets 3 of 3 wrong implementations through")
def test_shape_only(implementation):
    scores = torch.zeros(2, 3)
    assert implementation(scores, torch.ones(3, dtype=torch.bool)).shape == scores.shape


@wrong("a test that hides nothing", says="it lets 3 of 3 wrong implementations through")
def test_everything_kept(implementation):
    scores = torch.tensor([[0.0, 3.0, 1.0], [2.0, 2.0, 0.0]])
    torch.testing.assert_close(implementation(scores, torch.ones(2, 3, dtype=torch.bool)), torch.softmax(scores, -1))


@wrong("a test of zeros alone", says="nothing was raised for: hides_too_late")
def test_hidden_are_zero(implementation):
    mask = torch.tensor([[_T, _T, _F], [_F, _F, _F]])
    weights = implementation(torch.tensor([[0.0, 1.0, 2.0]] * 2), mask)
    assert not weights[~mask].any()


@wrong("a test without an empty row", says="nothing was raised for: forgets_empty_rows")
def test_no_empty_row(implementation):
    scores, mask = torch.tensor([[0.0, 1.0, torch.nan]]), torch.tensor([[_T, _T, _F]])
    torch.testing.assert_close(implementation(scores, mask), _weights(scores, mask))


@wrong("a test whose reference gives NaN for an empty row", says="it rejects a right implementation: row_by_row")
def test_wrong_reference(implementation):
    scores, mask = torch.tensor([[0.0, 1.0, 2.0]] * 2), torch.tensor([[_T, _T, _F], [_F, _F, _F]])
    expected = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    torch.testing.assert_close(implementation(scores, mask), expected)


@wrong("a test that every row sums to 1", says="it rejects a right implementation: row_by_row")
def test_every_row_sums_to_one(implementation):
    scores, mask = torch.tensor([[0.0, 1.0, 2.0]] * 2), torch.tensor([[_T, _T, _F], [_F, _F, _F]])
    assert torch.allclose(implementation(scores, mask).sum(-1), torch.ones(2))


@wrong("a test that asks for gradients", says="it rejects a right implementation: in_numpy")
def test_gradients(implementation):
    scores = torch.tensor([[0.0, 1.0, 2.0]] * 2, requires_grad=True)
    mask = torch.tensor([[_T, _T, _F], [_F, _F, _F]])
    weights = implementation(scores, mask)
    torch.testing.assert_close(weights, _weights(scores, mask))
    weights[0, 0].backward()
    assert torch.isfinite(scores.grad).all()


@wrong("a test that compares NaN with itself", says="it rejects a right implementation: row_by_row")
def test_nan_is_not_equal(implementation):
    scores, mask = torch.tensor([[0.0, 1.0, torch.nan]]), torch.tensor([[_T, _T, _F]])
    before = scores.clone()
    torch.testing.assert_close(implementation(scores, mask), _weights(before, mask))
    assert torch.equal(scores, before)


# 5.8 counterexample -------------------------------------------------------------------------------------------------

_q, _kept = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[_T, _F]])


wrong = mistakes_of("counterexample")


@wrong("ordinary numbers in the padding", says="both implementations give the same")
def counterexample_ordinary():
    return _q, torch.tensor([[[1.0, 2.0], [5.0, -3.0]]]), _kept


@wrong("large numbers in the padding", says="both implementations give the same")
def counterexample_large():
    return _q, torch.tensor([[[1.0, 2.0], [1e6, -1e6]]]), _kept


@wrong("nothing hidden", says="both implementations give the same")
def counterexample_nothing_hidden():
    return _q, torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.tensor([[_T, _T]])


@wrong("everything hidden, and ordinary numbers", says="both implementations give the same")
def counterexample_everything_hidden():
    return _q, torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), torch.tensor([[_F, _F]])


@wrong("NaN in a place that is kept", says="queries and kept tokens must be finite numbers")
def counterexample_kept_nan():
    return _q, torch.tensor([[[torch.nan, 2.0], [3.0, 4.0]]]), _kept


@wrong("NaN in the query", says="queries and kept tokens must be finite numbers")
def counterexample_nan_query():
    return torch.tensor([[[torch.nan, 0.0]]]), torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]), _kept


@wrong("the mask left out", says="it should return three tensors as a tuple")
def counterexample_without_keep():
    return _q, torch.tensor([[[1.0, 2.0], [torch.nan, torch.nan]]])


@wrong("a list for a mask", says="the third is a list")
def counterexample_list():
    return _q, torch.tensor([[[1.0, 2.0], [torch.nan, torch.nan]]]), [[True, False]]


@wrong("a mask with three axes", says="the third tensor should have the axes (B, Tk)")
def counterexample_wide_mask():
    return _q, torch.tensor([[[1.0, 2.0], [torch.nan, torch.nan]]]), torch.tensor([[[_T, _F]]])


@wrong("a mask of numbers", says="keep must be boolean: True = keep")
def counterexample_numbers():
    return _q, torch.tensor([[[1.0, 2.0], [torch.nan, torch.nan]]]), torch.tensor([[1.0, 0.0]])


@wrong("a mask of whole numbers", says="keep must be boolean: True = keep")
def counterexample_whole_numbers():
    return _q, torch.tensor([[[1.0, 2.0], [torch.nan, torch.nan]]]), torch.tensor([[1, 0]])


# 5.9 repaired_attention ---------------------------------------------------------------------------------------------


def _sdpa(q, k, v, keep):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, :])


def _clean(memory, keep):
    return memory.masked_fill(~keep[:, :, None], 0.0)


wrong = mistakes_of("repaired_attention")


@wrong("the line as it was", "That is the bug itself: the hidden values are still in the sum. Clean the memory first.")
def repaired_unchanged(q, memory, keep):
    return _sdpa(q, memory, memory, keep)


@wrong(
    "turning NaN into 0 in the result",
    "The queries of that sentence then get nothing, where they should get their average. "
    "Clean the memory, not the result.",
)
def repaired_hides_nan(q, memory, keep):
    return torch.nan_to_num(_sdpa(q, memory, memory, keep))


@wrong("multiplying the memory by the mask", "0 times NaN is NaN: the hidden places stay what they were. Replace them.")
def repaired_multiplies(q, memory, keep):
    memory = memory * keep[:, :, None]
    return _sdpa(q, memory, memory, keep)


@wrong(
    "cleaning the values and not the keys",
    "A NaN among the keys gives a NaN score, which PyTorch's mask adds to. Use the cleaned memory for both.",
)
def repaired_values_only(q, memory, keep):
    return _sdpa(q, memory, _clean(memory, keep), keep)


@wrong(
    "cleaning the keys and not the values",
    "The hidden values are in the sum with weight 0, and 0 times NaN is NaN. Use the cleaned memory for both.",
)
def repaired_keys_only(q, memory, keep):
    return _sdpa(q, _clean(memory, keep), memory, keep)


@wrong(
    "cleaning the memory and leaving the mask out",
    "A key of zeros has the score 0, and that takes weight. Both are needed.",
)
def repaired_without_mask(q, memory, keep):
    memory = _clean(memory, keep)
    return F.scaled_dot_product_attention(q, memory, memory)


@wrong("cleaning the places that are kept", "masked_fill replaces where its condition is True. Hidden is ~keep.")
def repaired_inverted(q, memory, keep):
    memory = memory.masked_fill(keep[:, :, None], 0.0)
    return _sdpa(q, memory, memory, keep)


@wrong(
    "cleaning the caller's memory",
    "Whoever called still needs it as it was. Without the underscore, masked_fill makes a new tensor.",
)
def repaired_in_place(q, memory, keep):
    memory.masked_fill_(~keep[:, :, None], 0.0)
    return _sdpa(q, memory, memory, keep)


@wrong(
    "keeping only places that are kept in every example",
    "Each example has a mask of its own; a token that one of them hides is a word in another.",
)
def repaired_common_places(q, memory, keep):
    common = keep.all(dim=0)
    return F.scaled_dot_product_attention(q, memory[:, common], memory[:, common])


@wrong(
    "turning the mask around for PyTorch",
    "F.scaled_dot_product_attention has our convention, True = keep. It is nn.MultiheadAttention that has the other.",
)
def repaired_turned_around(q, memory, keep):
    memory = _clean(memory, keep)
    return _sdpa(q, memory, memory, ~keep)


@wrong(
    "a mask of numbers",
    "A mask of numbers is added to the scores: kept keys get 1 more, hidden ones stay in. Hand over booleans.",
)
def repaired_in_numbers(q, memory, keep):
    memory = _clean(memory, keep)
    return _sdpa(q, memory, memory, keep.to(q.dtype))


def _by_hand(q, memory, keep, fill, softmax):
    """Attention to a cleaned memory, with another fill or softmax."""
    memory, hidden = _clean(memory, keep), ~keep[:, None, :]
    scores = (q @ memory.transpose(1, 2) / q.shape[-1] ** 0.5).masked_fill(hidden, fill)
    return softmax(scores).masked_fill(hidden, 0.0) @ memory


@wrong(
    "filling the hidden scores with a number such as -100 or -10000",
    "Kept scores may lie lower than that, and then the hidden ones win. A boolean attn_mask, or torch.finfo's lowest.",
)
def repaired_finite_fill(q, memory, keep):
    return _by_hand(q, memory, keep, -1e4, lambda x: torch.softmax(x, dim=-1))


@wrong(
    "subtracting one maximum for all rows",
    "A row that lies far below the largest score of all becomes 0 in every place: each row has a maximum of its own.",
)
def repaired_one_maximum(q, memory, keep):
    def softmax(scores):
        powers = torch.exp(scores - scores.max())
        total = powers.sum(dim=-1, keepdim=True)
        return powers / total.masked_fill(total == 0, 1.0)

    return _by_hand(q, memory, keep, torch.finfo(q.dtype).min, softmax)


@wrong("not dividing by the root of d", "F.scaled_dot_product_attention divides the scores by it, as lesson 01 does.")
def repaired_unscaled(q, memory, keep):
    return _sdpa(q * q.shape[-1] ** 0.5, _clean(memory, keep), _clean(memory, keep), keep)


@wrong(
    "nan_to_num of the memory",
    "Infinity becomes the largest finite number, which overflows in the score, and a NaN in a kept place would be "
    "hidden. Replace by place, not by value.",
)
def repaired_by_value(q, memory, keep):
    memory = torch.nan_to_num(memory)
    return _sdpa(q, memory, memory, keep)


@wrong(
    "replacing every NaN and infinity of the memory by 0",
    "A huge finite number is left, which overflows in the score, and a NaN in a kept place would be hidden. "
    "Replace by place, not by value.",
)
def repaired_by_every_value(q, memory, keep):
    memory = torch.where(memory.isfinite(), memory, 0.0)
    return _sdpa(q, memory, memory, keep)
