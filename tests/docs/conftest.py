"""The sample folder, made once."""

import os
import time
from pathlib import Path

import pytest

from tests.docs.samples import make_samples

AN_HOUR_AGO = time.time() - 3600


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be written to."""
    folder = tmp_path_factory.mktemp("samples") / "garden"
    make_samples(folder)
    for file in folder.rglob("*"):
        os.utime(file, (AN_HOUR_AGO, AN_HOUR_AGO))  # large files that are new are not read at once
    return folder
