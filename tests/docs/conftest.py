"""The sample folder, made once."""

from pathlib import Path

import pytest

from a2c_smcp.docs.samples import make_samples


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Not to be written to."""
    folder = tmp_path_factory.mktemp("samples") / "garden"
    make_samples(folder)
    return folder
