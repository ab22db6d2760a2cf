import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";

export interface Asset {
  body: string;
  type: string;
}

const folder = new URL("browser/", import.meta.url);
/** Only these files are ever read, by these names. */
const names = new Set(readdirSync(folder));
const types: Record<string, string> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".svg": "image/svg+xml",
};
const ready = new Map<string, Asset>();

/** A part of the page: markup, style, or a script whose types are taken off here, once. */
export async function assetAt(path: string): Promise<Asset | undefined> {
  const name = path === "/" ? "index.html" : path.slice(1);
  if (!names.has(name)) return undefined;
  const known = ready.get(name);
  if (known) return known;
  const text = await readFile(new URL(name, folder), "utf8");
  const asset = name.endsWith(".ts")
    ? { body: withoutTypes(text), type: "text/javascript; charset=utf-8" }
    : { body: text, type: types[name.slice(name.lastIndexOf("."))] ?? "text/plain" };
  ready.set(name, asset);
  return asset;
}

/**
 * What Node does to its own modules. The function says once per process that it is experimental, which nobody who
 * opens the page has any use for: https://nodejs.org/api/module.html#modulestriptypescripttypescode-options
 */
function withoutTypes(text: string): string {
  const warn = Object.getOwnPropertyDescriptor(process, "emitWarning");
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(text);
  } finally {
    if (warn) Object.defineProperty(process, "emitWarning", warn);
  }
}
