import { expect, it } from "vitest";
import { attestationEvents } from "../../../src/features/attest/attestation-events.ts";
import { consoleEvents } from "../../../src/features/consoles/console-events.ts";
import type { EventSource } from "../../../src/core/events/event.ts";
import type { SeenTarget } from "../../../src/core/permit/sight.ts";

/** The VM was in `old`, and is called `web-2` in `new` now. */
const vms = [
  { id: "vm-1", name: "web-2", projectId: "prj-new", projectName: "new", status: "RUNNING" },
];
const target = { kind: "vm", id: "vm-1", name: "web-x", projectId: "prj-old", projectName: "old" };
const records = {
  attestation: { what: "attestation", target, move: "failed", why: "it is in debug mode" },
  console: { what: "console", target, who: "U0OLIVIA" },
};

/** What somebody reads who sees this project alone. */
async function readBy(project: string, what: keyof typeof records): Promise<string[]> {
  const part = what === "console" ? consoleEvents(async () => "olivia") : attestationEvents;
  const acts = await part.read([{ id: "1-1", at: 1, record: records[what] }], {
    vms,
    seesAll: false,
    async only(reading, targetOf: (one: never) => SeenTarget | undefined) {
      return (await reading).filter((one) => targetOf(one as never)?.projectId === project);
    },
  });
  return acts.map(({ text }) => text.value);
}

it.each([
  ["attestation", "🔴 `web-2` failed attestation: it is in debug mode."],
  ["console", "🖥️ *olivia* opened a console on `web-2`."],
] as const)(
  "%s of a VM that was moved is told to those who see its project then",
  async (what, words) => {
    expect(await readBy("prj-old", what)).toEqual([words]);
    expect(await readBy("prj-new", what)).toEqual([]);
  },
);

it("an opening is told together with what came of it, and as unknown where no record says that", async () => {
  const opening = {
    id: "1-1",
    at: 1,
    record: { ...records.console, what: "console-opening", opening: "o" },
  };
  const after = (what: string) => ({
    id: "2-1",
    at: 2,
    record: { ...records.console, what, opening: "o" },
  });
  const told = async (...entries: Parameters<EventSource["read"]>[0]) => {
    const part = consoleEvents(async () => "olivia");
    const sight = { vms, seesAll: true, only: async <One>(reading: Promise<One[]>) => reading };
    const acts = await part.read(entries, sight as Parameters<EventSource["read"]>[1]);
    return acts.map(({ text, records: of }) => `${text.value} ${of.join(" ")}`);
  };
  expect(await told(opening, after("console"))).toEqual([
    "🖥️ *olivia* opened a console on `web-2`. 1-1 2-1",
  ]);
  expect(await told(opening, after("console-unopened"))).toEqual([]);
  expect(await told(opening)).toEqual([
    "🖥️ *olivia* asked for a console on `web-2`. Whether it opened is unknown. 1-1",
  ]);
});
