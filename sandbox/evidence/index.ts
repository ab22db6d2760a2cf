/** Evidence as AMD's and Intel's processors sign it, by vendors of the sandbox's own, and what vouches for it. */
export {
  evidenceOf,
  type Machine,
  type Platform,
  sandboxRoots,
  writeEndorsements,
} from "./vendors.ts";
export type { TrustedRoots } from "./trust.ts";
