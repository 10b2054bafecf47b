"""Reviews: the same everywhere, labelled by their evidence, out of reach for a bag of words. Docstrings: masked."""

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest
import torch
from conftest import ROOT

from attention_course.data import documents, words

SPLITS = list(documents.SPLITS)
CLASSES = range(len(documents.RATINGS))
# Of all reviews; it changes when, and only when, somebody edits the word lists or the recipe.
DIGEST = "3dd0f75935003368589e3b2827626fab24e8d92719c4f47bf0b6007e5abf8f26"


def digest():
    whole = "\n".join(f"{d} {d.label} {sorted(d.evidence)}" for split in SPLITS for d in documents.reviews(split))
    return hashlib.sha256(whole.encode()).hexdigest()


def degrees():
    return {
        row["phrase"]: int(row["degree"]) for row in words.table("reviews_opinions", {"phrase": None, "degree": None})
    }


def opinion(review, sentence, degree_of):
    """What the evidence in one sentence says, from -2 to 2, worked out from its words alone."""
    places = sorted(w for s, w in review.evidence if s == sentence)
    found = [review.sentences[sentence][w] for w in places]
    assert places == list(range(places[0], places[-1] + 1)), "a negation stands right before its word"
    degree = degree_of[found[-1]]
    return degree if len(found) == 1 else -1 if degree > 0 else 1


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_reviews_are_the_same_on_every_machine(seed):
    program = "import sys; sys.path.insert(0, 'tests'); from test_document_data import digest; print(digest())"
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed},
        cwd=ROOT,
    )  # fmt: skip
    assert run.stdout.strip() == DIGEST


def test_random_state_is_left_alone():
    documents._reviews.cache_clear()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    documents.reviews()
    assert torch.equal(before, torch.get_rng_state())


def test_splits_have_their_sizes_and_share_no_review():
    seen = Counter(d.sentences for split in SPLITS for d in documents.reviews(split))
    assert max(seen.values()) == 1
    for split, size in documents.SPLITS.items():
        reviews = documents.reviews(split)
        assert len(reviews) == size
        counts = Counter(d.label for d in reviews)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert documents.reviews(split, 7) == reviews[:7]


def test_reviews_have_three_to_twelve_sentences_of_single_words():
    lengths = set()
    for split in SPLITS:
        for d in documents.reviews(split):
            lengths.add(len(d.sentences))
            for sentence in d.sentences:
                assert all(word and word == word.strip() and " " not in word for word in sentence)
                assert not any("{" in word for word in sentence)
    assert lengths == set(range(3, 13))


def test_the_evidence_decides_the_label():
    degree_of = degrees()
    for split in SPLITS:
        for d in documents.reviews(split):
            said = [opinion(d, s, degree_of) for s in sorted({s for s, _ in d.evidence})]
            assert 1 <= len(said) <= 2
            if d.label == 2:
                assert min(said) < 0 < max(said)
            else:
                assert set(said) == {{0: -2, 1: -1, 3: 1, 4: 2}[d.label]}


def test_what_is_no_evidence_misleads():
    """Every review has opinion words outside its evidence, and there they say nothing about the label."""
    degree_of = degrees()
    by_label = {label: Counter() for label in CLASSES}
    for d in documents.reviews():
        outside = [
            word for s, sentence in enumerate(d.sentences) for w, word in enumerate(sentence)
            if word in degree_of and (s, w) not in d.evidence
        ]  # fmt: skip
        assert outside
        by_label[d.label].update(outside)
    negated = sum(len(d.evidence) > len({s for s, _ in d.evidence}) for d in documents.reviews())
    assert 0.2 < negated / len(documents.reviews()) < 0.8


def test_the_same_words_occur_with_different_labels():
    for word in degrees():
        labels = {d.label for d in documents.reviews() for s in d.sentences if word in s}
        assert labels == set(CLASSES), word


def test_a_bag_of_words_cannot_tell():
    train, test = documents.reviews(), documents.reviews("test")
    vocabulary = documents.vocabulary(train)
    index = {word: i for i, word in enumerate(vocabulary)}

    def counts(reviews):
        x = torch.zeros(len(reviews), len(vocabulary))
        for row, d in zip(x, reviews, strict=True):
            for sentence in d.sentences:
                for word in sentence:
                    row[index.get(word, 1)] += 1
        return x, torch.tensor([d.label for d in reviews])

    (x, y), (x_test, y_test) = counts(train), counts(test)
    best = 0.0
    for decay in (1e-4, 1e-2):
        torch.manual_seed(0)
        model = torch.nn.Linear(len(vocabulary), len(CLASSES))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=decay)
        for _ in range(150):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
            best = max(best, (model(x_test).argmax(1) == y_test).float().mean().item())
    assert best < 0.6


def test_the_vocabulary_is_of_what_it_is_given():
    one = [documents.Document((("b", "a", "b"), ("c",)), 0)]
    assert documents.vocabulary(one) == ["<pad>", "<unk>", "b", "a", "c"]
    assert documents.vocabulary(one, least=2) == ["<pad>", "<unk>", "b"]
    train = documents.vocabulary(documents.reviews())
    assert len(train) == len(set(train)) > 150


def test_wrong_questions_get_a_sentence():
    with pytest.raises(documents.UnknownSplit, match="no split 'dev'; the splits are train, validation, test"):
        documents.reviews("dev")
    with pytest.raises(ValueError, match="size is -1"):
        documents.reviews("train", -1)
    with pytest.raises(LookupError, match="no_such_library is not installed"):
        documents.docstrings(libraries=("no_such_library",))


def test_an_unknown_slot_is_named(tmp_path, monkeypatch):
    for path in words.folder().glob("reviews_*.csv"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    with (tmp_path / "reviews_sentences.csv").open("a", encoding="utf-8") as file:
        file.write("filler,We saw a {moon} .\n")
    monkeypatch.setattr(words, "folder", lambda: tmp_path)
    with pytest.raises(words.WordListError, match="unknown slot moon"):
        documents._Lists()


@pytest.fixture(scope="module")
def texts():
    return {split: documents.docstrings(split) for split in SPLITS}


def test_docstrings_are_there_and_balanced(texts):
    for split, least in (("train", 500), ("validation", 50), ("test", 50)):
        counts = Counter(d.label for d in texts[split])
        assert set(counts) == set(range(len(documents.LIBRARIES)))
        assert len(set(counts.values())) == 1
        assert len(texts[split]) >= least


def test_docstrings_hide_the_names_of_the_libraries(texts):
    masked = 0
    for d in [d for split in SPLITS for d in texts[split]]:
        assert 3 <= len(d.sentences) <= 12
        assert d.evidence == frozenset()
        for sentence in d.sentences:
            assert 1 <= len(sentence) <= 30
            assert not {name.lower() for name in documents.LIBRARIES} & set(sentence)
            masked += documents.MASK in sentence
    assert masked > 50


def test_docstrings_share_no_text_between_splits(texts):
    seen = Counter(d.sentences for split in SPLITS for d in texts[split])
    assert max(seen.values()) == 1


def test_docstrings_need_no_import_of_the_library():
    program = (
        "import sys; from attention_course.data import documents; "
        "documents.docstrings(libraries=('IPython', 'pandas')); print('pandas' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
