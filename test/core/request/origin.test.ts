import { expect, it } from "vitest";
import {
  type Origin,
  auditOrigin,
  buttonOrigin,
  originKey,
  pressOf,
  repeatedBy,
  undoneBy,
} from "../../../src/core/request/origin.ts";

const all: readonly Origin[] = [
  { kind: "typed", interaction: "1" },
  { kind: "mention", interaction: "1" },
  { kind: "form", interaction: "1" },
  { kind: "button", press: "1" },
  { kind: "request", request: "r-1", press: "again" },
  { kind: "request", request: "r-1", press: "retry" },
  { kind: "request", request: "r-1", press: "retry", undoes: "r-0" },
  { kind: "request", request: "r-1", press: "undo", undoes: "r-1" },
  { kind: "request", request: "r-1", press: "next", command: "vm.start" },
  { kind: "request", request: "r-1", press: "next", command: "vm.restart" },
  { kind: "request", request: "r-2", press: "again" },
  { kind: "alert", alert: "a-1", vm: "vm-1", command: "vm restart", after: 0 },
  { kind: "alert", alert: "a-1", vm: "vm-1", command: "vm restart", after: 1 },
  { kind: "alert", alert: "a-1", vm: "vm-2", command: "vm restart", after: 0 },
  { kind: "proposal", proposal: "p-1" },
  { kind: "rollout", rollout: "roll-1", request: "r-1" },
  { kind: "safety", request: "r-1" },
  { kind: "safety", request: "r-1", take: 2 },
];

it("an origin has another key for each thing that makes a request", () => {
  expect(new Set(all.map(originKey)).size).toBe(all.length);
});

it("an origin is carried by a form only where a button says it", () => {
  const carried = all.filter((origin) => buttonOrigin.safeParse(origin).success);
  expect(new Set(carried.map(({ kind }) => kind))).toEqual(
    // A typed one is of the button that runs a command whose answer was lost.
    new Set(["request", "alert", "proposal", "typed"]),
  );
});

it("knows one button in one message again, whatever else is pressed", () => {
  const button = { channelId: "C1", messageTs: "1.1", action: "run:vm.restart", value: "{}" };
  expect(pressOf({ ...button })).toBe(pressOf(button));
  for (const other of [{ channelId: "C2" }, { messageTs: "1.2" }, { action: "b" }, { value: "[]" }])
    expect(pressOf({ ...button, ...other })).not.toBe(pressOf(button));
});

it("an origin is the same button whoever asked for the request that it repeats, which a form carries", () => {
  const again = { kind: "request", request: "r-1", press: "again" } as const;
  const asked = { ...again, asker: "U0AMIR" };
  expect(originKey(asked)).toBe(originKey(again));
  expect(buttonOrigin.parse(asked)).toEqual(asked);
  expect(buttonOrigin.parse(again)).toEqual(again);
});

it("an origin tells what repeats a request from what follows it", () => {
  const repeated = all.map((origin) => repeatedBy({ origin })).filter(Boolean);
  expect(repeated).toEqual(["r-1", "r-1", "r-1", "r-2"]);
});

it("an origin tells an undo from everything else", () => {
  const undoes = all.map((origin) => undoneBy({ origin })).filter(Boolean);
  expect(undoes).toEqual(["r-0", "r-1"]);
});

it("leaves out of the audit trail what only tells one delivery from another", () => {
  expect(all.map(auditOrigin).filter((told) => "interaction" in told || "press" in told)).toEqual(
    all.filter(({ kind }) => kind === "request"),
  );
});
