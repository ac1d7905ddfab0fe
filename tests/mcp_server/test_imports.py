"""What describes documents needs no mcp, so that whatever reads files starts at once."""

import subprocess
import sys

import pytest

import a2c_smcp.mcp_server as kit


def test_elements_rendering_and_documents_import_no_mcp() -> None:
    rooms = ", ".join(f"a2c_smcp.mcp_server.{room}" for room in ("elements", "rendering", "documents"))
    code = f"import sys, {rooms}; print([name for name in ('mcp', 'mcp_types', 'uvicorn') if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"


def test_every_name_of_the_kit_is_there() -> None:
    for name in kit.__all__:
        assert getattr(kit, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kit.nothing
