"""A model on loopback for hosts that speak Gemini's API: it calls one tool, and then repeats what the tool said."""

import json
from typing import Any

from tests.models.service import Heard, ModelService, Turn, serving

__all__ = ["FakeModel", "serving"]


class FakeModel(ModelService):
    """`declared` has the functions that the host declared in its last request, by name."""

    def __init__(self, wanted: str, arguments: dict[str, Any]) -> None:
        # A host declares functions of its own, too: only the office's are ours to judge.
        super().__init__(self._turn, enforces=False)
        self.wanted = wanted
        self.arguments = arguments
        self.declared: dict[str, dict[str, Any]] = {}

    def _turn(self, heard: Heard) -> Turn:
        declared = [each for tool in heard.body.get("tools", ()) for each in tool.get("functionDeclarations", ())]
        self.declared = {each["name"]: each for each in declared}
        parts = heard.body["contents"][-1]["parts"]
        said = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if not said and any(name.endswith(self.wanted) for name in self.declared):
            return Turn(calls=((self.wanted, self.arguments),))
        return Turn(f"It said: {json.dumps(said)}")
