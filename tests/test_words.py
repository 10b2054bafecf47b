"""A word list that somebody extended wrongly gets a sentence that names the file, the line and the field."""

import pytest

from attention_course.data import words

FIELDS = {"word": None, "gender": {"f", "m"}, "note": {"", "*"}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("word,gender\nchat,m\n", "line 1: the columns are word, gender; expected word, gender, note"),
        ("word,gender,note\nchat,x,\n", "line 2, field gender: 'x' is none of f, m"),
        ("word,gender,note\nchat,m,\n,m,\n", "line 3, field word: it is empty"),
        ("word,gender,note\n chat,m,\n", "line 2, field word: there is a space before or after 'chat'"),
        ("word,gender,note\nchat,m\n", "line 2: the row has not 3 fields"),
        ("word,gender,note\nchat,m,,\n", "line 2: the row has not 3 fields"),
        ("word,gender,note\nchat,m,\nchat,m,\n", "line 3: this row stands in line 2 already"),
        ('word,gender,note\n"chat,m,\n', "line "),
        ("word,gender,note\n", "this word list is empty"),
        ("", "line 1: the columns are ; expected word, gender, note"),
    ],
)
def test_the_message_names_the_place(tmp_path, text, said):
    (tmp_path / "nouns.csv").write_text(text, encoding="utf-8")
    with pytest.raises(words.WordListError) as caught:
        words.table("nouns", FIELDS, tmp_path)
    assert "nouns.csv" in str(caught.value)
    assert said in str(caught.value)


def test_a_right_list_is_read_in_its_order(tmp_path):
    (tmp_path / "nouns.csv").write_text("word,gender,note\nchat,m,cat\nsouris,f,\n", encoding="utf-8")
    assert [row["word"] for row in words.table("nouns", FIELDS, tmp_path)] == ["chat", "souris"]
    with pytest.raises(words.WordListError, match="missing"):
        words.table("verbs", FIELDS, tmp_path)
