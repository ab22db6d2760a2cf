import { describe, expect, it } from "vitest";
import { resize } from "../../../src/commands/vm/resize.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { start } from "../../../src/commands/vm/start.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { brokenPin, possibility } from "../../../src/core/facts/change-facts.ts";
import type { Fact, FactQuery } from "../../../src/core/facts/fact.ts";
import { requestFacts } from "../../../src/core/facts/request-facts.ts";
import { explainStatus } from "../../../src/core/facts/status-facts.ts";
import { commands } from "../../../src/features/index.ts";
import { plainWords } from "../../../src/messages/markdown.ts";
import type { RequestRecord } from "../../../src/core/request/record.ts";
import type { Stage } from "../../../src/core/request/stage.ts";
import type { ChangeCommand, Target } from "../../../src/registry/define.ts";
import { called, stageOf, storedIn, vmTarget } from "../asking.ts";
import { factQuery } from "./fact-query.ts";

const target = vmTarget("web-2");
const words = (fact: Fact | undefined, command: ChangeCommand) =>
  fact && `${fact.blocks?.(command)}: ${plainWords(fact.text)}`;

const considered = (command: ChangeCommand, of: Target = target) => ({
  command,
  input: { vms: [of.id] },
});
const possible = (command: ChangeCommand, status: string) => {
  const of = vmTarget("web-2", { status });
  return words(possibility(considered(command, of), of), command);
};

const requestOf = (stage: Stage, over: Partial<RequestRecord> = {}, changedAt = 0) =>
  storedIn(stage, {
    changedAt,
    record: {
      id: "r-first",
      command: "vm stop",
      target,
      requester: { id: "U0AMIR", teamId: "T0OURS", name: "amir" },
      ...over,
    } as RequestRecord,
  });

/** What is known of a target while these requests are open. */
const told = async (
  open: ReturnType<typeof requestOf>[],
  { targets = [target], change }: Partial<Pick<FactQuery, "targets" | "change">> = {},
) => {
  const requests = { open: async () => open, on: async () => [] };
  const query = factQuery({ targets, change, requests });
  return (await requestFacts.read(query)).map((fact) => words(fact, stop));
};

describe("what is known of a target before a change", () => {
  it("is a status that doesn't allow it, or in which nothing is left to do", () => {
    expect(possible(restart, "STOPPED")).toMatch(/^fails: web-2 is stopped\.?$/i);
    expect(possible(start, "RUNNING")).toBe(
      "note: web-2 is already as wanted: nothing would be sent.",
    );
    expect(possible(stop, "RUNNING")).toBeUndefined();
  });

  it("is that it is in ERROR, and that the compute service refuses the change because of that", () => {
    const inError = vmTarget("web-2", { status: "ERROR" });
    const facts = { target: inError, seen: ["ERROR", 0, "RUNNING"] as const, commands, now: 0 };
    const change = considered(restart);
    const [fact] = explainStatus({ ...facts, requests: [], change });
    expect(words(fact, restart)).toMatch(/^note: web-2 has been in ERROR since /);
    const before = { id: target.id, name: "web-2", projectId: target.projectId, status: "ERROR" };
    const call = called({ sentAt: 1000, answer: { status: 409 } as never, before });
    const request = requestOf(stageOf("rejected", call), { command: "vm restart" });
    const [refused] = explainStatus({
      ...facts,
      requests: [{ request, command: restart }],
      change,
    });
    expect(words(refused, restart)).toMatch(
      /^fails: web-2 has been in ERROR since .*, and the compute service refused the last restart because of that\.$/,
    );
  });

  it("is a lock behind an unknown outcome, a change that comes first, and a request that waits", async () => {
    const unknown = requestOf(stageOf("unknown"));
    expect(await told([unknown])).toEqual([
      expect.stringMatching(
        /^fails: web-2 is locked for changes: nobody has recorded whether amir's stop \(r-first\), sent .*, happened\.$/,
      ),
    ]);
    expect(await told([requestOf(stageOf("accepted"))])).toEqual([
      "note: web-2 is changing: amir's stop (r-first) is running.",
    ]);
    expect(await told([requestOf(stageOf("accepted"))], { change: considered(restart) })).toEqual([
      "note: web-2 is changing: amir's stop (r-first) is running and comes first.",
    ]);
    expect(await told([requestOf(stageOf("draft"))])).toEqual([
      "note: web-2 has an open request: amir's stop (r-first) waits for approval.",
    ]);
    expect(await told([requestOf(stageOf("unknown"), { target: vmTarget("web-1") })])).toEqual([]);
  });

  it("is told once of a project's request: of the project where that is asked about, too", async () => {
    const project = { ...target, kind: "project" as const, id: target.projectId, name: "payments" };
    const open = [requestOf(stageOf("unknown"), { target: project })];
    expect(await told(open)).toEqual([
      expect.stringMatching(
        /^fails: web-2 is locked.* amir's stop \(r-first\) of its project payments/,
      ),
    ]);
    expect(await told(open, { targets: [project, target] })).toEqual([
      expect.stringMatching(/^fails: payments is locked for changes: /),
    ]);
  });

  it("is that it is pinned, where the change can change what it measures", () => {
    expect(words(brokenPin(considered(resize), target), resize)).toBe(
      "halts: web-2 is pinned, and this can change its measurement: then attestation fails until the pin is updated.",
    );
    expect(brokenPin(considered(restart), target)).toBeUndefined();
  });
});
