"""Translates a folder, a little slowly, so that it can be killed: SOURCE OUTPUT."""

import sys
import time
from pathlib import Path

import standins

from glassformer.pipelines.documents import translate_folder


def slowly(text):
    time.sleep(0.004)
    return standins.upper(text)


outcome = translate_folder(Path(sys.argv[1]), Path(sys.argv[2]), standins.StandIn(slowly), options={"to": "de"})
print(len(outcome.translated), len(outcome.kept), flush=True)
assert not outcome.failed, outcome.failed
