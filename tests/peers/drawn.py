# SPDX-License-Identifier: Apache-2.0
"""Pictures of text, drawn with the words of LICENSE: what unseen.py shows to networks that read."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import peers


def words_of(rng, count):
    text = (peers.ROOT / "LICENSE").read_text().split()
    start = rng.integers(0, len(text) - count)
    return " ".join(text[start:start + count])


def colour(rng, low=0, high=256):
    return tuple(rng.integers(low, high, 3).tolist())


def draw_words(photo, rng):
    """A photo with some words on it, of any size and colour."""
    picture = photo.copy()
    pen = ImageDraw.Draw(picture)
    for _ in range(rng.integers(3, 8)):
        x, y = rng.integers(0, picture.width * 3 // 4), rng.integers(0, picture.height - 30)
        font = ImageFont.load_default(int(rng.integers(16, 56)))
        pen.text((int(x), int(y)), words_of(rng, rng.integers(1, 4)), colour(rng), font,
                 stroke_width=int(rng.integers(0, 3)), stroke_fill=colour(rng))
    return picture


def draw_line(photo, rng):
    """A line of text on a pale or dark part of a photo, as a text detector cuts it out."""
    part = photo.resize((640, 480)).crop((0, 0, 320, 48))
    dark = rng.integers(0, 2)
    paper = Image.new("RGB", part.size, colour(rng, 0, 80) if dark else colour(rng, 190, 256))
    picture = Image.blend(part, paper, rng.uniform(.5, 1))
    size = int(rng.integers(22, 40))
    ImageDraw.Draw(picture).text((6, (46 - size) // 2), words_of(rng, rng.integers(1, 6)),
                                 colour(rng, 170, 256) if dark else colour(rng, 0, 110),
                                 ImageFont.load_default(size))
    return picture


def draw_page(photo, rng):
    """A page with a title, columns of text, a figure with its caption and a table."""
    page = Image.new("RGB", (760, 1000), colour(rng, 235, 256))
    pen, small = ImageDraw.Draw(page), ImageFont.load_default(13)
    pen.text((90, 50), words_of(rng, 5), "black", ImageFont.load_default(int(rng.integers(24, 34))))
    columns = int(rng.integers(1, 3))
    width, count = 600 // columns - 10 * (columns - 1), 0
    for column in range(columns):
        x, y = 80 + column * (width + 20), 130
        while y < 900:
            kind = rng.integers(0, 6)
            if kind == 0 and y < 650:
                figure = photo.resize((width, width * 2 // 3 if columns > 1 else 230))
                page.paste(figure, (x, y))
                y, count = y + figure.height + 8, count + 1
                pen.text((x + 30, y), f"Figure {count}. {words_of(rng, 4)}", "black", small)
            elif kind == 1 and y < 750:
                for row in range(int(rng.integers(3, 8))):
                    pen.line((x, y, x + width, y), "black")
                    for cell in range(3):
                        pen.text((x + 6 + cell * width // 3, y + 3), words_of(rng, 1)[:10], "black", small)
                    y += 20
                pen.line((x, y, x + width, y), "black")
            else:
                for _ in range(int(rng.integers(3, 12))):
                    text = words_of(rng, width // 32)
                    while pen.textlength(text, small) > width:
                        text = text.rsplit(" ", 1)[0]
                    pen.text((x, y), text, "black", small)
                    y += 17
            y += 30
    return page


DRAW = {"words": draw_words, "lines": draw_line, "pages": draw_page}


def draw(kind, photo, seed):
    return DRAW[kind](photo, np.random.default_rng(seed))
