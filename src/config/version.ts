import { readFileSync } from "node:fs";
import * as z from "zod";

/** Gatehouse's own version, from package.json: `1.0.0`, or `1.0.1-dev` between releases. */
export const version = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))).version;
