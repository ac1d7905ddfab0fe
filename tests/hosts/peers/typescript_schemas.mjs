// Which tools does the TypeScript SDK refuse? Reads a list of tools as JSON, and writes the names of those that a
// client could not list.
import { readFileSync } from "node:fs";

const sdk = `${process.env.NODE_HOSTS}/node_modules/@modelcontextprotocol/sdk/dist/esm`;
const { ListToolsResultSchema } = await import(`${sdk}/types.js`);
const { AjvJsonSchemaValidator } = await import(`${sdk}/validation/ajv-provider.js`);

console.warn = () => {};
const refused = [];
for (const tool of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const [{ outputSchema }] = ListToolsResultSchema.parse({ tools: [tool] }).tools;
    if (outputSchema) new AjvJsonSchemaValidator().getValidator(outputSchema);
  } catch {
    refused.push(tool.name);
  }
}
console.log(JSON.stringify(refused));
