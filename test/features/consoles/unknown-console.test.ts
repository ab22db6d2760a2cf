import { expect, it } from "vitest";
import { restart } from "../../../src/commands/vm/restart.ts";
import { requestFacts } from "../../../src/core/facts/request-facts.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import { plainWords } from "../../../src/messages/markdown.ts";
import { stageOf, storedIn, vmTarget } from "../../core/asking.ts";
import { factQuery } from "../../core/facts/fact-query.ts";

it("a console that nobody knows to be open is told, and locks nothing", async () => {
  const target = vmTarget("web-2");
  const requester = { id: "U0AMIR", teamId: "T0OURS", name: "amir" };
  const record = { id: "r-first", command: "vm console", target, requester } as RequestRecord;
  const request = storedIn(stageOf("unknown"), { changedAt: 0, record });
  const requests = { open: async () => [request], on: async () => [] };
  const [fact] = await requestFacts.read(factQuery({ targets: [target], requests }));
  expect(fact && plainWords(fact.text)).toMatch(
    /^web-2 may have a console open: nobody has recorded whether amir's \w+ \(r-first\), sent .*, happened\.$/,
  );
  expect(fact?.blocks?.(restart)).toBeUndefined();
});
