import { createHash } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonical } from "../../../src/text/canonical-json.ts";
import {
  type Approvable,
  fingerprintOf,
  shortFingerprint,
} from "../../../src/core/permit/fingerprint.ts";

const approvable: Approvable = {
  id: "r-1",
  command: "vm restore",
  input: { vm: "vm-1", snapshot: "snap-1" },
  target: {
    kind: "vm",
    id: "vm-1",
    name: "db-1",
    projectId: "p-1",
    status: "RUNNING",
    specs: { cpu: 2 },
  },
  requesterId: "U0OLIVIA",
  teamId: "T0OURS",
  channelId: "C01OPS",
  reason: "corrupt",
  policyVersion: "v1",
  required: 1,
  expiresAt: 1_795_176_000_000,
  evidence: [["Current status", "RUNNING"]],
};

const shuffled = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, shuffled(inner)]);
  return Object.fromEntries(entries.toReversed()) as unknown;
};

describe("canonical JSON", () => {
  it("is RFC 8785's own example of keys, and one spelling per value", () => {
    expect(
      canonical({ "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\u{1f600}": 5, "\u0080": 6, ö: 7 }),
    ).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}');
    expect(canonical([1e21, 1e-7, 0.1, -0, 1e2, '\u2028"\\'])).toBe(
      '[1e+21,1e-7,0.1,0,100,"\u2028\\"\\\\"]',
    );
    expect(canonical({ a: undefined, b: [undefined], c: null })).toBe('{"b":[null],"c":null}');
  });

  it("doesn't depend on the order of keys, and reads back as the same value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        expect(canonical(shuffled(value))).toBe(canonical(value));
        expect(JSON.parse(canonical(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 500 },
    );
  });

  it("is the same for equal values only", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), (a, b) => {
        const isSame = canonical(a) === canonical(b);
        expect(isSame).toBe(
          canonical(JSON.parse(JSON.stringify(a))) === canonical(JSON.parse(JSON.stringify(b))),
        );
        if (isSame) expect(JSON.parse(canonical(a))).toEqual(JSON.parse(canonical(b)));
      }),
      { numRuns: 500 },
    );
  });
});

describe("the digest of what is approved", () => {
  it("is SHA-256 over the canonical JSON, of which 16 digits are shown", () => {
    const wanted = createHash("sha256").update(canonical(approvable)).digest("hex");
    expect(fingerprintOf(approvable)).toBe(wanted);
    expect(shortFingerprint(wanted)).toBe(wanted.slice(0, 16));
  });

  it("is another one when any field is, and when a field is missing", () => {
    const digests = new Set([fingerprintOf(approvable)]);
    for (const key of Object.keys(approvable)) {
      const value: unknown = Reflect.get(approvable, key);
      const other =
        typeof value === "number"
          ? value + 1
          : typeof value === "string"
            ? `${value}x`
            : { other: value };
      digests.add(fingerprintOf({ ...approvable, [key]: other }));
      const { [key as "id"]: _left, ...rest } = approvable;
      digests.add(fingerprintOf(rest as Approvable));
    }
    expect(digests.size).toBe(1 + 2 * Object.keys(approvable).length);
  });

  it("can't be shifted from one field into the next", () => {
    const one = fingerprintOf({ ...approvable, command: "vm stop", requesterId: "U1" });
    const two = fingerprintOf({ ...approvable, command: "vm stopU1", requesterId: "" });
    expect(one).not.toBe(two);
    expect(fingerprintOf({ ...approvable, reason: 'x","required":0' })).not.toBe(
      fingerprintOf({ ...approvable, reason: "x", required: 0 }),
    );
  });
});
