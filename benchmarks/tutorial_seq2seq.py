"""How much sooner does lesson 08's translator learn than the usual tutorial design? Both on the lesson's data.

    python benchmarks/tutorial_seq2seq.py [--bleu 90] [--quick]

The tutorial design, written anew here: GRUs of 128 numbers, batches of 32 random sentences padded to one fixed length,
an encoder that reads forward and reads the padding, attention without a mask, a decoder that runs one step at a time
and projects its keys anew at each, a loss that counts padding, Adam at 0.001. The lesson's design is the code of the
lesson itself: its solutions, its model, its training loop, its rates.

Prints the CPU time that the training of each took until the BLEU of the lesson's test set was first seen to reach the
goal, and the ratio. CPU time, so that a busy machine does not decide; the time for measuring BLEU is not counted.
``--quick`` makes a few updates of each and says so.
"""

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["ATTENTION_DEVICE"] = "cpu"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for models as small as these, a second thread costs more than it gives

import sacrebleu
import torch
from torch import nn

from attention_course.authoring.lesson import Lesson
from attention_course.data import translation

LESSON = Path(__file__).resolve().parents[1] / "solutions" / "08_translation"
PAD, BOS, EOS = translation.Vocabulary.PAD, translation.Vocabulary.BOS, translation.Vocabulary.EOS
HIDDEN, BATCH, RATE, DROPOUT = 128, 32, 1e-3, 0.1


class Stopwatch:
    """CPU seconds of training alone, and the moment at which the goal was reached."""

    def __init__(self, goal: float, most_updates: int):
        self.goal, self.most = goal, most_updates
        self.spent, self.updates, self.bleu, self.reached = 0.0, 0, 0.0, False
        self._since = time.process_time()

    def over(self, measure: Callable[[], float], every: int) -> bool:
        """Called between two updates: measure now and then, off the clock; True once there is nothing left to do."""
        self.spent += time.process_time() - self._since
        if self.updates and (self.updates % every == 0 or self.updates == self.most):
            self.bleu = measure()
            self.reached = self.bleu >= self.goal
            print(f"    {self.updates:6d} updates, {self.spent:7.1f} s: BLEU {self.bleu:5.1f}", flush=True)
        self._since = time.process_time()
        return self.reached or self.updates >= self.most


class TutorialEncoder(nn.Module):
    def __init__(self, words: int):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(words, HIDDEN), nn.Dropout(DROPOUT)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)

    def forward(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.gru(self.dropout(self.embedding(source)))


class TutorialDecoder(nn.Module):
    def __init__(self, words: int, steps: int):
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(words, HIDDEN), nn.Dropout(DROPOUT)
        self.query, self.key, self.score = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 1)
        self.gru = nn.GRU(2 * HIDDEN, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, words)
        self.steps = steps

    def forward(self, states: torch.Tensor, hidden: torch.Tensor, target: torch.Tensor | None = None) -> torch.Tensor:
        """Log-probabilities (B, steps, words), reading the target's words, or its own where there is no target."""
        word = torch.full((len(states), 1), BOS)
        said = []
        for t in range(self.steps):
            query = hidden.permute(1, 0, 2)
            scores = self.score(torch.tanh(self.query(query) + self.key(states))).transpose(1, 2)  # (B, 1, S)
            context = torch.bmm(torch.softmax(scores, dim=-1), states)
            output, hidden = self.gru(torch.cat([self.dropout(self.embedding(word)), context], dim=2), hidden)
            said.append(self.out(output))
            word = said[-1].argmax(dim=-1).detach() if target is None else target[:, t : t + 1]
        return torch.log_softmax(torch.cat(said, dim=1), dim=-1)


def tutorial(pairs: list, test: list, words: tuple[Any, Any], watch: Stopwatch, every: int) -> None:
    """Train the tutorial design until the goal is reached or the updates are over."""
    torch.manual_seed(8)
    english, french = words
    width = 1 + max(max(len(p.source), len(p.target)) for p in [*pairs, *test])  # every sentence is padded to it

    def padded(sentences: list[list[int]]) -> torch.Tensor:
        return torch.tensor([[*s, EOS] + [PAD] * (width - len(s) - 1) for s in sentences])

    source = padded([english.encode(p.source) for p in pairs])
    target = padded([french.encode(p.target) for p in pairs])
    test_source = padded([english.encode(p.source) for p in test])
    encoder, decoder = TutorialEncoder(len(english)), TutorialDecoder(len(french), width)
    optimizers = [torch.optim.Adam(part.parameters(), lr=RATE) for part in (encoder, decoder)]
    criterion = nn.NLLLoss()

    @torch.no_grad()
    def measure() -> float:
        encoder.eval(), decoder.eval()
        rows = torch.cat([decoder(*encoder(part)).argmax(-1) for part in test_source.split(100)]).tolist()
        encoder.train(), decoder.train()
        return bleu([french.decode(row) for row in rows], test)

    chance = random.Random(8)
    while True:
        order = list(range(len(pairs)))
        chance.shuffle(order)
        for i in range(0, len(order), BATCH):
            if watch.over(measure, every):
                return
            chosen = order[i : i + BATCH]
            for optimizer in optimizers:
                optimizer.zero_grad()
            said = decoder(*encoder(source[chosen]), target[chosen])
            criterion(said.flatten(0, 1), target[chosen].flatten()).backward()
            for optimizer in optimizers:
                optimizer.step()
            watch.updates += 1


def lesson(names: dict[str, Any], test: list, watch: Stopwatch, every: int) -> None:
    """Train the lesson's design, by its own `train`, until the goal is reached or the updates are over."""
    name, stopped = "with attention", False

    def batches() -> Iterator[Any]:
        nonlocal stopped
        for batch in names["lesson_plan"]("benchmark"):  # under another name nothing is photographed
            if watch.over(lambda: bleu(names["translate"](names["models"][name], test), test), every):
                break
            yield batch
            watch.updates += 1
        stopped = True

    def rates() -> Iterator[float]:
        for rate in names["rates"]:
            if stopped:
                return
            yield rate

    names["train"](name, batches(), rates())


def bleu(written: list[list[str]], pairs: list) -> float:
    references = [" ".join(pair.target) for pair in pairs]
    return sacrebleu.corpus_bleu([" ".join(w) for w in written], [references], tokenize="none", force=True).score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bleu", type=float, default=90.0, help="the goal")
    parser.add_argument("--quick", action="store_true", help="a few updates of each, to see that it runs")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    names = Lesson(LESSON).namespace()
    pairs, test = names["training"], translation.load("test", size=50 if wanted.quick else 500)
    words = names["english"], names["french"]
    few = 10 if wanted.quick else None
    torch.optim.Adam([nn.Parameter(torch.zeros(1))])  # its first use imports a good deal: before the clock starts

    print(f"until BLEU {wanted.bleu:g} on {len(test)} test sentences, CPU seconds of training, one thread")
    print("  lesson 08:")
    ours = Stopwatch(wanted.bleu, few or len(names["rates"]))
    lesson(names, test, ours, every=few or 25)
    print("  the tutorial design:")
    theirs = Stopwatch(wanted.bleu, few or 40_000)
    tutorial(pairs, test, words, theirs, every=few or 250)
    if wanted.quick:
        print(f"quick: {ours.spent:.1f} s and {theirs.spent:.1f} s for {few} updates each; no goal was set")
    elif not ours.reached or not theirs.reached:
        print(
            "the goal was not reached by "
            + " and ".join(n for n, w in (("the lesson", ours), ("the tutorial", theirs)) if not w.reached)
        )
    else:
        print(f"lesson {ours.spent:.1f} s, tutorial {theirs.spent:.1f} s: ratio {theirs.spent / ours.spent:.1f}")


if __name__ == "__main__":
    main()
