"""A small random translator, for all tests of the command line; who writes into its folder takes a copy."""

import pytest
from tiny_translators import tiny_bundle

from glassformer.pipelines.translator import Translator


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return tiny_bundle(tmp_path_factory.mktemp("translator") / "model")


@pytest.fixture(scope="session")
def translator(model):
    return Translator.load(model)
