import { channel } from "node:diagnostics_channel";
import * as z from "zod";
import type { Log } from "../log/log.ts";
import { parseJson } from "../text/parse-json.ts";

/** A stored value that isn't what Gatehouse stores there. */
export interface UnreadableValue {
  /** The name of the record. */
  record: string;
  /** The key in Redis, with the field of a hash, or the ID where the key follows from it. */
  key: string;
  /** The place in the value and what is wrong there. It never contains the value. */
  problem: string;
}

/** Publishes each value that doesn't fit its record. */
const unreadableValues = channel("gatehouse:unreadable");

export type StoredRecord<Value> = ReturnType<typeof defineRecord<Value>>;

/**
 * Declares what Gatehouse stores under a key or in a field of a hash, as JSON. A value may be of
 * another release, edited by hand, or half written, so it is read by a schema. Whoever reads decides
 * what an unreadable value means. It may raise a guard, and never lowers one: a freeze that can't be
 * read is a freeze.
 */
export function defineRecord<Value>({ name, schema }: { name: string; schema: z.ZodType<Value> }) {
  function refuse(key: string, problem: string): undefined {
    unreadableValues.publish({ record: name, key, problem } satisfies UnreadableValue);
  }

  /** As `parse`, for a value that isn't stored as JSON. */
  function check(value: unknown, key: string): Value | undefined {
    const { data, error } = schema.safeParse(value);
    return error ? refuse(key, problemOf(error)) : data;
  }

  function parse(text: string, key: string): Value | undefined {
    const value = parseJson(text);
    return value === undefined ? refuse(key, "it isn't JSON") : check(value, key);
  }

  return {
    name,
    /** Undefined for a value that doesn't fit, which is then logged with its key. */
    parse,
    check,
    /** The values of a hash with one record for each field, without those that don't fit. */
    parseAll: (fields: Readonly<Record<string, string>>, key: string): Value[] =>
      Object.entries(fields).flatMap(([field, text]) => parse(text, `${key} ${field}`) ?? []),
    write: (value: Value): string => JSON.stringify(value),
  };
}

function problemOf({ issues: [issue] }: z.ZodError): string {
  const place = issue?.path.join(".") ?? "";
  return [place, issue?.message ?? ""].filter((part) => part !== "").join(": ");
}

/** A check for each member of an object. The check of an optional member must be optional. */
type Checks<Value> = {
  readonly [Name in keyof Value]-?: object extends Pick<Value, Name>
    ? z.ZodType<Value[Name]> & { _zod: { optin: "optional" | "defaulted" } }
    : z.ZodType<Value[Name]>;
};

/**
 * Checks every member of an object, so that a member added to the type needs a check here. Members
 * that only another release knows are kept, and are still there when the value is written again.
 */
export function objectOf<Value extends object>(members: Checks<Value>): z.ZodType<Value> {
  const schema: unknown = z.looseObject(members);
  // The types of looseObject know nothing of Value's optional and readonly members.
  return schema as z.ZodType<Value>;
}

/** How many unreadable values are logged, so that a broken Redis doesn't fill the disk. */
const mostLogged = 1_000;

/** Logs each unreadable value once, until it is closed. */
export function logUnreadableValues(log: Log): { close(): Promise<void> } {
  const logged = new Set<string>();
  const listener = (message: unknown) => {
    const { record, key, problem } = message as UnreadableValue;
    const place = `${record} ${key}`;
    if (logged.has(place) || logged.size >= mostLogged) return;
    logged.add(place);
    log.error("redis.unreadable", { record, key, problem });
  };
  unreadableValues.subscribe(listener);
  return {
    async close() {
      unreadableValues.unsubscribe(listener);
    },
  };
}
