"""What a client is given to reach its server: checked before it tries."""

from typing import Any

import pytest

from a2c_smcp.utils.link import LinkOptions


@pytest.mark.parametrize("options", [{"url": None}, {"url": "http://x", "api_key": 5}])
def test_options_that_are_no_texts_are_refused_at_once(options: Any) -> None:
    with pytest.raises(TypeError, match="must be a text"):
        LinkOptions(**options)
