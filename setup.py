"""The README for a package index, which holds none of the pictures and pages that it points to."""

import re
from pathlib import Path

from setuptools import setup

readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
readme = re.sub(r"^!\[.*?\]\((?!https?:).*?\)\n+", "", readme, flags=re.M)  # a picture
readme = re.sub(r"\[(.*?)\]\((?!https?:).*?\)", r"\1", readme)  # a link
setup(long_description=readme, long_description_content_type="text/markdown")
