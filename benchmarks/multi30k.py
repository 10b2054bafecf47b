"""The translator of lesson 08, larger, on real captions: BLEU on Multi30k after some minutes on a CPU.

    python benchmarks/multi30k.py --data DIR [--minutes 10]

``DIR`` holds train.en.gz and so on; without ``--data`` they are downloaded. The model, its loss, and greedy and beam
search are the lesson's own code. Added are a larger size, dropout in three places, one matrix for reading and writing a
French word, and a learning rate that falls with the clock. Sentences are lowercased and cut into tokens, and so is what
BLEU is computed on; the test set is that of 2016. The minutes are those of training, by the clock on the wall: run it
on an idle machine.
"""

import argparse
import os
import time
from pathlib import Path

os.environ["ATTENTION_DEVICE"] = "cpu"

import sacrebleu
import torch
from torch import nn

from attention_course.authoring.lesson import Lesson
from attention_course.data import translation

LESSON = Path(__file__).resolve().parents[1] / "solutions" / "08_translation"


def lowered(pairs: list) -> list:
    return [
        translation.Pair(tuple(w.lower() for w in p.source), tuple(w.lower() for w in p.target), frozenset())
        for p in pairs
    ]


def larger(names: dict, source_words: int, target_words: int, d: int, dropout: float) -> nn.Module:
    """The lesson's Translator with d numbers in a state, dropout, and the word vectors shared with the output."""
    torch.manual_seed(8)
    model = names["Translator"](source_words, target_words, d)
    nn.init.normal_(model.embed.weight, std=d**-0.5)
    model.out.weight = model.embed.weight
    model.encoder.embed = nn.Sequential(model.encoder.embed, nn.Dropout(dropout))
    model.embed = nn.Sequential(model.embed, nn.Dropout(dropout))
    model.out = nn.Sequential(nn.Dropout(dropout), model.out)
    return model


def bleu(written: list[list[str]], pairs: list) -> float:
    references = [" ".join(pair.target) for pair in pairs]
    return sacrebleu.corpus_bleu([" ".join(w) for w in written], [references], tokenize="none", force=True).score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="the folder that holds the corpus; without it, it is downloaded")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to train")
    parser.add_argument("--size", type=int, default=256, help="numbers in a state")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=2e-3, help="the highest learning rate")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--least", type=int, default=2, help="how often a word has to occur in training to be known")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000, help="how many test sentences to translate")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    wanted = parser.parse_args()

    torch.set_num_threads(wanted.threads)
    names = Lesson(LESSON).namespace()
    training, validation, test = (
        lowered(translation.load(split, source="multi30k", folder=wanted.data))
        for split in ("train", "validation", "test")
    )
    validation, test = validation[: wanted.sentences], test[: wanted.sentences]
    english = translation.Vocabulary.build((p.source for p in training), least=wanted.least)
    french = translation.Vocabulary.build((p.target for p in training), least=wanted.least)
    names |= {"english": english, "french": french}  # the lesson's `translate` reads and writes with these
    model = larger(names, len(english), len(french), wanted.size, wanted.dropout)
    optimizer = torch.optim.Adam(model.parameters(), lr=wanted.rate, fused=True)
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(training)} pairs, {len(english)} and {len(french)} words, {count / 1e6:.1f} million parameters")

    began, updates, epoch = time.monotonic(), 0, 0
    length = 60 * wanted.minutes
    while time.monotonic() - began < length:
        model.train()
        for batch in translation.batches(training, english, french, wanted.batch, seed=epoch):
            part = (time.monotonic() - began) / length
            if part >= 1:
                break
            optimizer.param_groups[0]["lr"] = wanted.rate * min(updates / 100, 1 - part)
            logits, _ = model(*batch[:3])
            loss = names["masked_cross_entropy"](logits, batch.target_out)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            updates += 1
        epoch += 1
        spent = time.monotonic() - began
        print(f"  epoch {epoch}, {updates} updates, {spent:.0f} s, last loss {loss.item():.2f}", flush=True)

    model.eval()
    translate = names["translate"]
    print(f"after {wanted.minutes:g} minutes of training:")
    print(f"  validation, greedy: BLEU {bleu(translate(model, validation), validation):.1f}", flush=True)
    print(f"  test 2016, greedy: BLEU {bleu(translate(model, test), test):.1f}", flush=True)
    print(f"  test 2016, beam {wanted.beam}: BLEU {bleu(translate(model, test, beam=wanted.beam), test):.1f}")


if __name__ == "__main__":
    main()
