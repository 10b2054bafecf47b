"""The picture in a lesson's title: a short reference in the text, the picture itself in the notebook.

Colab shows no picture that is attached to a Markdown cell. JupyterLab and Colab both show one that stands in the cell's
source as a data URI, which is also what Colab writes when a picture is pasted. So where the text says
``attachment:cover.png`` the notebook has the picture: :func:`embed` puts it in, :func:`extract` brings the words back.
"""

import base64
import io
import re

from PIL import Image, ImageChops

REFERENCE = "attachment:cover.png"
ALIKE = 32  # of 255: two roundings to a palette differ by less at every pixel, another digit or word by far more
_PICTURE = re.compile(r"(?<=\]\()data:image/png;base64,([A-Za-z0-9+/=]+)(?=\))")


def embed(source: str, picture: bytes) -> str:
    """A title cell's source with the PNG ``picture`` in place of the reference; the words beside it stay."""
    return source.replace(REFERENCE, "data:image/png;base64," + base64.b64encode(picture).decode("ascii"))


def extract(source: str) -> str:
    """A title cell's source as the lesson's text has it: the reference in place of the picture."""
    return _PICTURE.sub(REFERENCE, source)


def picture_in(source: str) -> bytes | None:
    """The picture that :func:`embed` put into ``source``; None if there is none."""
    found = _PICTURE.search(source)
    return base64.b64decode(found[1]) if found else None


def small(picture: bytes, scale: float, stored: bytes | None = None) -> bytes:
    """``picture`` as it is shown, ``scale`` times as wide, in 256 colours; or ``stored`` itself if that looks the same.

    Markdown cannot say how wide a picture is, so it has to be made as wide as it is shown.
    """
    with Image.open(io.BytesIO(picture)) as opened:
        drawn = opened.convert("RGB")
    shown = drawn.resize([round(n * scale) for n in drawn.size], Image.Resampling.LANCZOS)
    # A palette that covers all colours of a map and its colour bar: a third of the bytes, and no difference to be seen.
    few = shown.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=5, dither=Image.Dither.NONE)
    if stored is not None and _look_alike(stored, few):
        return stored
    buffer = io.BytesIO()
    few.save(buffer, format="png", optimize=True)
    return buffer.getvalue()


def _look_alike(stored: bytes, fresh: Image.Image) -> bool:
    with Image.open(io.BytesIO(stored)) as opened:
        if opened.mode != fresh.mode or opened.size != fresh.size:
            return False
        gap = ImageChops.difference(opened.convert("RGB"), fresh.convert("RGB"))
    return max(most for _, most in gap.getextrema()) < ALIKE
