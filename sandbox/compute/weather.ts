import { createRandom } from "../random.ts";
import type { Fate } from "./world.ts";

export type ErrorShape =
  | "error"
  | "message"
  | "detail"
  | "errors"
  | "problem"
  | "text"
  | "html"
  | "empty";
export type AnswerShape = "record" | "wrapped" | "data" | "task" | "empty" | "text" | "html";
export type ListShape = "array" | "wrapped" | "data" | "items" | "paged" | "paged-without-total";
export type SnapshotShape = "snapshot_id" | "id" | "nested" | "data" | "none";

/** What may go wrong or be different with a call. All that strike a call are put together, the later ones on top. */
export interface Effect extends Fate {
  slowMs?: number;
  /** Answers this 4xx or 5xx, before anything is done unless `applied`. */
  status?: number;
  applied?: boolean;
  errorShape?: ErrorShape;
  message?: string;
  retryAfter?: number | string;
  /** The connection is destroyed instead of answering, before or after the effect. */
  lost?: "before" | "after";
  /** No answer ever, before or after the effect. */
  hang?: "before" | "after";
  /** The effect comes this much later; the answer is lost at once, or never comes with `hang`. */
  lateMs?: number;
  /** `json`: half of the JSON as a whole answer; `length` and `chunk`: the connection breaks in the middle. */
  cut?: "json" | "length" | "chunk";
  /** Pads the body with that many spaces. */
  hugeBytes?: number;
  /** One byte of the body, then another after this many milliseconds, and so on. */
  dripMs?: number;
  /** 307 to this address; `redirectStatus` for others. */
  redirect?: string;
  redirectStatus?: number;
  answer?: AnswerShape;
  list?: ListShape;
  mostPerPage?: number;
  /** `total` counts only the records of the page, or is this number. */
  total?: "page" | number;
  /** `per_page` in the answer is what was asked for, also where the page has fewer. */
  repeatsPerPage?: boolean;
  /** A page after the last one is refused with this status; without it, it is empty. */
  pastLastPage?: 400 | 404 | 422;
  /** Every page is the first one. */
  ignoresPage?: boolean;
  /** The answer is sent in this encoding, whatever the request accepts; the bytes of an unknown one are the plain ones. */
  encoding?: string;
  /** Times in answers don't say that they are UTC. */
  withoutZone?: boolean;
  snapshot?: SnapshotShape;
  /** Records show this status, or take turns between several. */
  shownStatus?: string | readonly string[];
  /** Single records, by ID or name, with these fields set to something else or left out. */
  spoils?: Readonly<Record<string, { set?: Record<string, unknown>; without?: readonly string[] }>>;
  /** Fields left out of records, put into them, or set to something of another type. */
  without?: readonly string[];
  extra?: Record<string, unknown>;
}

/** Something that goes wrong, or is different, with some calls. */
export interface Storm extends Effect {
  /**
   * Which calls: "*", "reads", "writes", or method and path like "POST /v1/vms/:id/restart", "GET /v1/*", "* /v1/vms/:id";
   * a path may hold real ids.
   */
  match?: string;
  /** Strikes only that often; without it until cleared. */
  times?: number;
  /** Lets that many matching calls pass first. */
  skip?: number;
  /** 0 to 1. Of such rules at most one strikes a call: two faults by chance could make one that no service has. */
  probability?: number;
}

export interface StormState extends Storm {
  id: number;
  struck: number;
}

/** All that goes wrong now. The same seed and the same calls give the same weather. */
export interface Weather {
  add(storm: Storm): number;
  /** One, or all. */
  clear(id?: number): void;
  /** What strikes this call. */
  strike(method: string, path: string): { effect: Effect; ids: number[] };
  list(): StormState[];
}

export function createWeather(seed: number): Weather {
  const random = createRandom(seed);
  let lastId = 0;
  let rules: {
    state: StormState;
    matches: (method: string, path: string) => boolean;
    passed: number;
  }[] = [];
  return {
    add(storm) {
      lastId += 1;
      const state = { ...storm, id: lastId, struck: 0 };
      rules.push({ state, matches: compileMatch(storm.match ?? "*"), passed: 0 });
      return lastId;
    },
    clear(id) {
      rules = id === undefined ? [] : rules.filter((rule) => rule.state.id !== id);
    },
    strike(method, path) {
      let effect: Effect = {};
      const ids: number[] = [];
      let isStruckByChance = false;
      for (const rule of rules) {
        const { match: _, times, skip = 0, probability, id, struck, ...its } = rule.state;
        if (!rule.matches(method, path) || struck >= (times ?? Number.POSITIVE_INFINITY)) continue;
        rule.passed += 1;
        if (rule.passed <= skip) continue;
        if (probability !== undefined) {
          if (isStruckByChance || random() >= probability) continue;
          isStruckByChance = true;
        }
        rule.state.struck += 1;
        effect = { ...effect, ...its };
        ids.push(id);
      }
      return { effect, ids };
    },
    list: () => rules.map((rule) => ({ ...rule.state })),
  };
}

export function compileMatch(match: string): (method: string, path: string) => boolean {
  if (match === "*") return () => true;
  if (match === "reads") return (method) => method === "GET";
  if (match === "writes") return (method) => method !== "GET";
  const [first = "*", second] = match.split(" ");
  const [wanted, template] = second === undefined ? ["*", first] : [first, second];
  const source = template
    .replaceAll(/[.+?^$()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/:\w+|\{\w+\}/g, "[^/]+")
    .replaceAll("*", ".*");
  const pattern = new RegExp(`^${source}$`);
  return (method, path) => (wanted === "*" || wanted === method) && pattern.test(path);
}
