"""Generates all pictures: `python -m docs.pictures`."""

from pathlib import Path

from docs.pictures.gallery import PICTURES

IMAGES = Path(__file__).parents[1] / "images"

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")
