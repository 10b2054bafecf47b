"""Attention from the first score to a translator you trained.

A lesson imports three modules: ``check`` (is my answer right, and if not, which mistake is it?),
``plots`` (the figures) and ``device`` (CPU or GPU, and seeds).
"""

__version__ = "0.2.0"
