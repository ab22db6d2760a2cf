import { describe, expect, it } from "vitest";
import { lastChangeFacts } from "../../../src/core/facts/last-change-facts.ts";
import { plainWords } from "../../../src/messages/markdown.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import { stageOf, storedIn, vmTarget } from "../asking.ts";
import { factQuery } from "./fact-query.ts";

const target = vmTarget("web-2");
const now = Date.parse("2026-11-25T12:00:00Z");
const hourMs = 3_600_000;

const requestOf = (id: string, agoMs: number, stage = stageOf("done")) =>
  storedIn(stage, {
    changedAt: now - agoMs,
    record: {
      id,
      command: "vm stop",
      target,
      origin: { kind: "typed" },
      requester: { id: "U0AMIR", teamId: "T0OURS", name: "amir" },
    } as RequestRecord,
  });

const read = (on: readonly ReturnType<typeof requestOf>[], tellsRecent = true) =>
  lastChangeFacts.read(
    factQuery({
      targets: [target],
      tellsRecent,
      now,
      requests: { open: async () => [], on: async () => on },
    }),
  );

describe("the last change of a target", () => {
  it("is the newest that did something, as a sentence that stands alone", async () => {
    const [fact, ...others] = await read([
      requestOf("r-older", 2 * hourMs),
      requestOf("r-last", hourMs),
      requestOf("r-nothing", 60_000, stageOf("done", { already: true })),
    ]);
    expect(others).toEqual([]);
    expect(fact).toMatchObject({ kind: "last change", request: "r-last", since: now - hourMs });
    expect(fact && plainWords(fact.text)).toMatch(
      /^The last change of web-2 with Gatehouse: amir stopped it, .*\.$/,
    );
  });

  it("is nothing that ended more than a day ago, because that explains nothing now", async () => {
    expect(await read([requestOf("r-old", 25 * hourMs)])).toEqual([]);
  });

  it("isn't read for a reader who doesn't tell what was before", async () => {
    expect(await read([requestOf("r-last", hourMs)], false)).toEqual([]);
  });
});
