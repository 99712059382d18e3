"""Draw docs/images/report.png, the README's picture: a report of a failed check, as Chromium shows it.

python docs/make_picture.py
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import symcheck as sc

PICTURE = Path(__file__).parent / "images" / "report.png"
HEADER = (40, 40, 1060, 212)  # left, top, right, bottom in pixels of the page: the verdict in words
RESULTS = (40, 735, 1060, 1480)  # the table of properties


def draw() -> None:
    """Check CartPole's mirror without its action map, and keep the headline and the table."""
    claim = sc.Symmetry("wrong mirror", sc.groups.cyclic(2), [[-1, -1, -1, -1]], [[0, 1]])
    with tempfile.TemporaryDirectory() as folder:
        page, screen = Path(folder, "report.html"), Path(folder, "screen.png")
        sc.verify_env("CartPole-v1", claim).save_html(str(page))
        browser = shutil.which("chromium") or "chromium"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,2600"]
        subprocess.run([browser, *flags, f"--screenshot={screen}", page.as_uri()], check=True, capture_output=True)
        parts = [Image.open(screen).convert("RGB").crop(box) for box in (HEADER, RESULTS)]
    picture = Image.new("RGB", (parts[0].width, sum(part.height for part in parts)), "white")
    picture.paste(parts[0], (0, 0))
    picture.paste(parts[1], (0, parts[0].height))
    PICTURE.parent.mkdir(exist_ok=True)
    picture.quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    draw()
