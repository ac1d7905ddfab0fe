"""Says for each tool what the rules answer, if one answer holds for every call: agents read it in the tool's meta."""

from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.decisions.tool_definitions import ToolDefinitions
from a2c_smcp.computer.mcp_clients.catalogue import Catalogue
from a2c_smcp.computer.mcp_clients.serving import ServingConnections
from a2c_smcp.computer.rules.rule import Effect
from a2c_smcp.computer.rules.rule_list import RuleList
from a2c_smcp.results import RULE_KEY
from a2c_smcp.smcp import SMCPTool
from a2c_smcp.types import TOOL_NAME

__all__ = ["ToolMarks"]


class ToolMarks:
    """The shown tools with their marks. They are made once for a catalogue and a list of rules."""

    def __init__(self, serving: ServingConnections, definitions: ToolDefinitions, decisions: DecisionStore) -> None:
        self._serving = serving
        self._definitions = definitions
        self._decisions = decisions
        self._made_for: tuple[Catalogue, RuleList, bool] | None = None
        self._marks: dict[TOOL_NAME, Effect] = {}
        self._tools: list[SMCPTool] = []

    def tools(self) -> list[SMCPTool]:
        """The tools as agents see them. Without any rule they have no marks."""
        self._make()
        return self._tools

    def have_changed(self) -> bool:
        """Whether the marks are others than when they were last made."""
        before = self._marks
        self._make()
        return self._marks != before

    def asleep(self) -> frozenset[str]:
        """The rules that were made for a tool that is another one now."""
        shown, found = self._serving.catalogue.shown, set()
        for rule in self._decisions.rules.list.all:
            tool = shown.get(rule.tool[0].text) if rule.digest is not None and rule.effect != "deny" else None
            if tool is not None and self._definitions.of(tool).digest != rule.digest:
                found.add(rule.id)
        return frozenset(found)

    def _make(self) -> None:
        catalogue, decisions = self._serving.catalogue, self._decisions
        state = catalogue, decisions.rules.list, decisions.allow_all
        if self._made_for is not None and all(one is other for one, other in zip(self._made_for, state, strict=True)):
            return
        self._marks = self._answers(catalogue) if decisions.rules.has_rules else {}
        self._tools = [self._marked(tool) for tool in catalogue.tools] if self._marks else catalogue.tools
        self._made_for = state

    def _answers(self, catalogue: Catalogue) -> dict[TOOL_NAME, Effect]:
        found: dict[TOOL_NAME, Effect] = {}
        for name, shown in catalogue.shown.items():
            is_auto = self._decisions.allow_all or (shown.meta is not None and shown.meta.auto_apply is True)
            answer = self._decisions.rules.answer_for_all(self._definitions.ruled(shown), "allow" if is_auto else "ask")
            if answer is not None:
                found[name] = answer
        return found

    def _marked(self, tool: SMCPTool) -> SMCPTool:
        answer = self._marks.get(tool["name"])
        return tool if answer is None else {**tool, "meta": {**(tool.get("meta") or {}), RULE_KEY: answer}}
