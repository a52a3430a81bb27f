"""Images as another program writes them, with Pillow: for the tests of folders of images.

usage: photos.py FOLDER COUNT [SIDE]      COUNT JPEG files in each of FOLDER/disc, FOLDER/ring and FOLDER/bars, of
                                          SIDE x SIDE pixels, or of many sizes where no SIDE is given
       photos.py --kinds FOLDER           an image of four colours in every kind of file, and kinds.json with the red,
                                          green and blue that Pillow sees in its quarters

Made with Pillow 13.0; any other that reads and writes JPEG and PNG will do.
"""

import json
import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter, ImageOps

COLOURS = [(200, 40, 60), (30, 160, 70), (50, 70, 190), (220, 210, 120)]


def picture(kind, side):
    """A form on a ground of another colour, anywhere, of any size."""
    colour = lambda low, high: tuple(random.randint(low, high) for _ in range(3))
    width, height = (side, side) if side else (random.randint(60, 160), random.randint(60, 160))
    image = Image.new("RGB", (width, height), colour(20, 110))
    draw, square = ImageDraw.Draw(image), min(width, height)
    radius = square * random.uniform(0.2, 0.4)
    x, y = (length / 2 + (square / 2 - radius) * random.uniform(-1, 1) for length in (width, height))
    box, ink = (x - radius, y - radius, x + radius, y + radius), colour(150, 250)
    if kind == "disc":
        draw.ellipse(box, fill=ink)
    elif kind == "ring":
        draw.ellipse(box, outline=ink, width=max(2, int(radius / 4)))
    else:
        for k in range(4):
            draw.rectangle((x - radius, y + radius * (k / 2 - 1), x + radius, y + radius * (k / 2 - 0.75)), fill=ink)
    return image.filter(ImageFilter.GaussianBlur(0.7))


def photographs(folder, count, side=0):
    random.seed(1)
    for kind in "disc", "ring", "bars":
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            options = dict(quality=random.randint(70, 95), progressive=number % 3 == 0)
            picture(kind, side).save(folder / kind / f"IMG_{number:04}.JPG", "JPEG", **options)


def kinds(folder):
    folder.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (64, 64))
    for place, colour in zip([(0, 0), (32, 0), (0, 32), (32, 32)], COLOURS):
        image.paste(colour, (*place, place[0] + 32, place[1] + 32))
    alpha = image.convert("RGBA")
    alpha.putalpha(Image.linear_gradient("L").resize((64, 64)).point(lambda v: 128 if v < 128 else 255))
    grey = image.convert("L")
    deep = Image.new("I;16", grey.size)
    deep.putdata([257 * v for v in grey.tobytes()])
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held upright
    files = {
        "rgb.jpg": (image, dict(quality=95)),
        "progressive.jpg": (image, dict(quality=95, progressive=True)),
        "cmyk.jpg": (image.convert("CMYK"), dict(quality=95)),
        "grey.jpg": (grey, dict(quality=95)),
        "turned.jpg": (image, dict(quality=95, exif=turned)),
        "rgb.png": (image, {}),
        "palette.png": (image.quantize(8), {}),
        "alpha.png": (alpha, {}),
        "grey.png": (grey, {}),
        "grey-alpha.png": (alpha.convert("LA"), {}),
        "deep.png": (deep, {}),
        "bits.png": (image.convert("1"), {}),
    }
    expected = {}
    for name, (content, options) in files.items():
        content.save(folder / name, **options)
        seen = ImageOps.exif_transpose(Image.open(folder / name))
        if seen.mode in ("RGBA", "LA"):
            white = Image.new("RGBA", seen.size, "white")
            seen = Image.alpha_composite(white, seen.convert("RGBA"))
        if seen.mode.startswith("I"):
            seen = seen.point(lambda v: v / 257).convert("L")
        seen = seen.convert("RGB")
        quarters = []
        for x, y in [(0, 0), (32, 0), (0, 32), (32, 32)]:
            pixels = seen.crop((x + 8, y + 8, x + 24, y + 24)).tobytes()
            quarters.append([sum(pixels[c::3]) / 256 for c in range(3)])
        expected[name] = quarters
    (folder / "kinds.json").write_text(json.dumps(expected))


if sys.argv[1] == "--kinds":
    kinds(Path(sys.argv[2]))
else:
    photographs(Path(sys.argv[1]), int(sys.argv[2]), int((sys.argv[3:4] or [0])[0]))
