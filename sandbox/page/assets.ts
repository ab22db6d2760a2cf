import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";

export interface Asset {
  body: string;
  type: string;
}

const folder = new URL("browser/", import.meta.url);
/**
 * Only these files are ever read, by these names. A browser takes `../` no further than to the top, so what a file in
 * here imports from `sandbox/slack` is asked for as `/slack/…`: the one file of that kind is served too.
 */
const files = new Map([
  ...readdirSync(folder, { recursive: true, encoding: "utf8" }).map(
    (name) => [name.replaceAll("\\", "/"), new URL(name, folder)] as const,
  ),
  ["slack/fields.ts", new URL("../slack/fields.ts", import.meta.url)],
]);
const types: Record<string, string> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  svg: "image/svg+xml",
  ts: "text/javascript; charset=utf-8",
};
const ready = new Map<string, Asset>();

/** A part of the page: markup, style, or a script whose types are taken off here, once. */
export async function assetAt(path: string): Promise<Asset | undefined> {
  const name = path === "/" ? "index.html" : path.slice(1);
  const file = files.get(name);
  const extension = /\.([a-z]+)$/.exec(name)?.[1] ?? "";
  const type = types[extension];
  if (file === undefined || type === undefined) return undefined;
  const known = ready.get(name);
  if (known) return known;
  const text = await readFile(file, "utf8");
  const asset = { body: extension === "ts" ? withoutTypes(text) : text, type };
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
