// Values of forms. Pure. A field that was left empty is `undefined`, and is not sent.

/** A number as it was typed: more digits than a float holds stay as they are. */
export class Typed {
  constructor(text) {
    this.text = text;
  }

  get isNumber() {
    return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(this.text);
  }

  toSent() {
    return typeof JSON.rawJSON === "function" ? JSON.rawJSON(this.text) : Number(this.text);
  }
}

/** A schema may contain itself, or be so large that it would fill the page. Beyond these limits the person types JSON. */
const MOST = { depth: 12, fields: 200, choices: 500 };

/** Whether an object is open from the start; the person opens the others. */
export function opens(schema, level) {
  return level === 0 || (level <= 2 && Object.keys(schema.properties ?? {}).length <= 20);
}

/** A schema without its references: those into the same schema are followed. */
export function resolved(schema, root, depth = 0) {
  if (schema === true || schema === undefined || schema === null || typeof schema !== "object") return {};
  if (typeof schema.$ref !== "string" || depth > MOST.depth) return schema;
  if (!schema.$ref.startsWith("#")) return {};
  let found = root;
  for (const part of schema.$ref.slice(1).split("/").filter(Boolean)) {
    found = found?.[decodeURIComponent(part).replace(/~1/g, "/").replace(/~0/g, "~")];
  }
  const { $ref, ...beside } = schema;
  return { ...resolved(found, root, depth + 1), ...beside };
}

/** The kind of field that a schema asks for. */
export function kindOf(schema) {
  if ("const" in schema) return "const";
  if (choices(schema)) return "choice";
  if (variants(schema)) return "variants";
  const types = [schema.type ?? guessed(schema)].flat().filter((type) => type !== "null");
  if (types.length !== 1) return "json";
  const [type] = types;
  if (type === "array") return choices(schema.items ?? {}) ? "several" : schema.items && !Array.isArray(schema.items) ? "list" : "json";
  if (type === "object") return fits(schema.properties) ? "object" : "json";
  return ["string", "number", "integer", "boolean"].includes(type) ? type : "json";
}

function fits(properties) {
  return Boolean(properties) && typeof properties === "object" && Object.keys(properties).length <= MOST.fields;
}

function guessed(schema) {
  if (schema.properties) return "object";
  return schema.items ? "array" : [];
}

/** `[{value, title}]` of a schema that names all its values, or null. */
export function choices(schema) {
  if (Array.isArray(schema.enum)) {
    if (schema.enum.length > MOST.choices) return null;
    return schema.enum.map((value, at) => ({ value, title: String(schema.enumNames?.[at] ?? value) }));
  }
  const titled = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(titled) && titled.length && titled.length <= MOST.choices && titled.every((each) => each && typeof each === "object" && "const" in each)) {
    return titled.map((each) => ({ value: each.const, title: String(each.title ?? each.const) }));
  }
  return null;
}

/** The alternatives of a schema, without "null", which is the same as leaving it out. */
export function variants(schema) {
  const all = schema.anyOf ?? schema.oneOf;
  const found = Array.isArray(all) ? all.filter((each) => each?.type !== "null") : null;
  return found?.length && found.length <= MOST.choices ? found : null;
}

/** The value of a field before anybody typed: its default, or the parts that a required object needs. */
export function initial(schema, root = schema, required = true, depth = 0) {
  const found = resolved(schema, root);
  if (depth > MOST.depth) return undefined;
  if (found.default !== undefined && found.default !== null) return asTyped(found.default);
  if ("const" in found) return found.const;
  switch (kindOf(found)) {
    case "object": {
      if (!required || !opens(found, depth)) return undefined;
      const entries = Object.entries(found.properties).map(([name, part]) => [
        name,
        initial(part, root, (found.required ?? []).includes(name), depth + 1),
      ]);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    }
    case "list":
    case "several":
      return required ? [] : undefined;
    case "boolean":
      return required ? false : undefined;
    case "variants":
      return variants(found).length === 1 ? initial(variants(found)[0], root, required, depth + 1) : undefined;
    default:
      return undefined;
  }
}

function asTyped(value) {
  if (typeof value === "number") return new Typed(String(value));
  if (Array.isArray(value)) return value.map(asTyped);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, asTyped(each)]));
  return value;
}

/** The value as it is sent: typed numbers as numbers, and empty fields left out. */
export function completed(value) {
  if (value instanceof Typed) return value.toSent();
  if (Array.isArray(value)) return value.map(completed).filter((each) => each !== undefined);
  // JSON.rawJSON makes an object without a prototype, which stays as it is.
  if (value && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype) {
    const entries = Object.entries(value).map(([key, each]) => [key, completed(each)]);
    return Object.fromEntries(entries.filter(([, each]) => each !== undefined));
  }
  return value;
}

/** A date and time with an offset, as a `datetime-local` field shows it: in local time. "" if the text is not one. */
export function toLocal(text) {
  const found = typeof text === "string" ? new Date(text) : new Date(NaN);
  if (Number.isNaN(found.getTime())) return "";
  const { day, time } = local(found);
  return `${day}T${time}`;
}

/** The content of such a field as RFC 3339 with the browser's offset; undefined if it is empty. */
export function fromLocal(text) {
  const found = new Date(text);
  if (!text || Number.isNaN(found.getTime())) return undefined;
  const minutes = -found.getTimezoneOffset();
  const { day, time } = local(found);
  const offset = `${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
  return `${day}T${time}${offset}`;
}

function local(date) {
  const day = [String(date.getFullYear()).padStart(4, "0"), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return { day, time: [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":") };
}

function two(number) {
  return String(Math.floor(number)).padStart(2, "0");
}
