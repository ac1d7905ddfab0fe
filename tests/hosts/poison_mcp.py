"""An MCP server of forty tools whose schemas some host cannot read, in plain Python. Each of them can be called."""

import json
import sys
from typing import Any

JSON = dict[str, Any]


def an_object(**properties: Any) -> JSON:
    return {"type": "object", "properties": properties}


def deep(levels: int) -> JSON:
    schema: JSON = {"type": "string"}
    for _ in range(levels):
        schema = an_object(a=schema)
    return schema


def doubling(levels: int) -> JSON:
    parts = {
        f"d{n}": an_object(x={"$ref": f"#/$defs/d{n + 1}"}, y={"$ref": f"#/$defs/d{n + 1}"}) for n in range(levels)
    }
    return {**an_object(a={"$ref": "#/$defs/d0"}), "$defs": {**parts, f"d{levels}": {"type": "string"}}}


NODE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
RECURSIVE = {**an_object(tree={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}}
#: Schemas of arguments.
INPUTS: dict[str, JSON] = {
    "a_true": an_object(a=True),
    "a_false": an_object(a=False),
    "null_properties": {"type": "object", "properties": None},
    "list_of_properties": {"type": "object", "properties": []},
    "null_property": an_object(a=None),
    "wrong_required": {"type": "object", "required": "a"},
    "numbers_required": {"type": "object", "required": [1]},
    "required_flag": an_object(a={"type": "string", "required": True}),
    "no_type": {"properties": {}},
    "type_string": {"type": "string"},
    "type_list": {"type": ["object", "null"]},
    "type_int": an_object(a={"type": "int"}),
    "recursive": RECURSIVE,
    "recursive_root": an_object(a={"$ref": "#"}),
    "dangling": an_object(a={"$ref": "#/$defs/no"}),
    "remote": an_object(a={"$ref": "https://schemas.invalid/a.json"}),
    "any_of": {"type": "object", "anyOf": [an_object(a={"type": "string"}), an_object(b={"type": "string"})]},
    "only_a_reference": {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}},
    "bare_array": an_object(a={"type": "array"}),
    "odd_names": an_object(**{"名称": {"type": "string"}, "a[]": {"type": "string"}, "x" * 100: {}}),
    "proto": an_object(__proto__={"type": "string"}, constructor={"type": "string"}),
    "levels": deep(45),
    "doubling": doubling(30),
    "large": an_object(**{f"a{n}": {"type": "string", "description": "x" * 200} for n in range(2000)}),
    "numbers": {"type": 7, "properties": 7, "required": 7},
    "bad_schema": {"type": "object", "$schema": 7},
}
#: Schemas of results.
OUTPUTS: dict[str, JSON] = {
    "out_true": an_object(a=True),
    "out_flag": an_object(a={"type": "string", "pattern": "(?i)^abc$"}),
    "out_escape": an_object(a={"type": "string", "pattern": r"^\-a\Z"}),
    "out_int": an_object(a={"type": "int"}),
    "out_dangling": an_object(a={"$ref": "#/$defs/no"}),
    "out_remote": an_object(a={"$ref": "https://schemas.invalid/a.json"}),
    "out_draft4": {**an_object(a={"type": "number", "minimum": 0, "exclusiveMinimum": True}), "id": "urn:a"},
    "out_id": {**an_object(), "$id": "urn:same"},
    "out_id_again": {**an_object(a={"type": "string"}), "$id": "urn:same"},
    "out_nullable": an_object(a={"nullable": True}),
    "out_array": {"type": "array"},
    "out_null_properties": {"type": "object", "properties": None},
    "out_enum": an_object(a={"enum": []}),
    "out_recursive": RECURSIVE,
}


def tools() -> list[JSON]:
    listed = [{"name": name, "description": "Poison.", "inputSchema": schema} for name, schema in INPUTS.items()]
    plain = {"type": "object"}
    return listed + [{"name": n, "inputSchema": plain, "outputSchema": schema} for n, schema in OUTPUTS.items()]


def answer(method: str, params: JSON) -> JSON:
    if method == "initialize":
        info = {"name": "poison", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": tools()}
    return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}], "structuredContent": {}}


def serve() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "server/discover":
            outcome: JSON = {"error": {"code": -32601, "message": "Method not found"}}
        else:
            outcome = {"result": answer(message["method"], message.get("params") or {})}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)


if __name__ == "__main__":
    serve()
