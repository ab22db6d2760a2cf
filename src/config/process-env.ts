import type { Env } from "./environment.ts";

/** The variables of this process. A file of its own, because not everybody needs all the rules. */
export const processEnv: Env = process.env;
