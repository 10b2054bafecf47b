"""The course's data: made from word lists of our own, the same on every machine, with the right answers known.

``translation`` makes English–French sentence pairs with gold word alignments, ``documents`` makes reviews with gold
evidence and collects the docstrings of the installed libraries. Nothing is downloaded unless you ask for a real corpus.
"""
