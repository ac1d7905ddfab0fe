// The TypeScript SDK's client. It compiles the output schema of every tool that it lists.
import { createInterface } from "node:readline";
import assert from "node:assert/strict";

const sdk = `${process.env.NODE_HOSTS}/node_modules/@modelcontextprotocol/sdk/dist/esm/client`;
const { Client } = await import(`${sdk}/index.js`);
const { StdioClientTransport } = await import(`${sdk}/stdio.js`);

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const client = new Client({ name: "host", version: "1" });
const args = ["mcp", "--search", "never"];
await client.connect(new StdioClientTransport({ command: "a2c", args, env: process.env }));
const honest = ["list_computers", "pc__echo", "pc__picture", "pc__fail", "pc__wait"];
let names = [];
const deadline = Date.now() + 80_000;
while (!honest.every((name) => names.includes(name)) || names.filter((name) => name.startsWith("evil__")).length !== 40) {
  assert.ok(Date.now() < deadline, names.join(" "));
  names = (await client.listTools()).tools.map((tool) => tool.name);
}
const call = (name, given = {}, options = undefined) => client.callTool({ name, arguments: given }, undefined, options);
assert.equal((await call("pc__echo", { text: "hi" })).content[0].text, "hi");
// What is shown is not what is checked.
assert.equal((await call("evil__type_int", { a: ["x"] })).content[0].text, '{"a": ["x"]}');
assert.equal((await call("pc__picture")).content[0].data, "cGljdHVyZQ==");
const failed = await call("pc__fail");
assert.ok(failed.isError && failed.content[0].text.includes("it went wrong"));

const stop = new AbortController();
const waiting = call("pc__wait", {}, { signal: stop.signal }).catch(() => "ended");
console.log("waiting");
await lines.next();
stop.abort();
assert.equal(await waiting, "ended");
console.log("cancelled");
await lines.next();
await client.close();
console.log("done");
process.exit(0);
