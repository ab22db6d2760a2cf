import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it } from "vitest";
import type { Evaluation } from "../../src/core/permit/evaluations.ts";
import { startWorld, testPolicy } from "../support/start-world.ts";

/** Which rules are evaluated meanwhile, and whether by the gateway or by the worker's gate, in order. */
async function evaluationsIn(act: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = [];
  const note = (message: unknown) => {
    const { rule, targets } = message as Evaluation;
    const isGate = /src\/core\/perform\//.test(new Error().stack ?? "");
    const of = targets === 0 ? "asker" : "target";
    seen.push(`${isGate ? "gate" : "gateway"}: ${rule} of ${of}`);
  };
  subscribe("gatehouse:policy", note);
  try {
    await act();
  } finally {
    unsubscribe("gatehouse:policy", note);
  }
  return seen;
}

/** Each question once. */
const once = (by: string) => [
  `${by}: access of asker`,
  `${by}: access of target`,
  `${by}: protect of target`,
  `${by}: approvals of target`,
];

describe("policy", () => {
  it("is asked each question once for a typed restart, and once more by the gate", async () => {
    await using world = await startWorld();
    const evaluations = await evaluationsIn(async () => {
      await world.olivia.types("ops", "/vm restart web-2");
      await world.ended();
    });
    expect(evaluations).toEqual([...once("gateway"), ...once("gate")]);
  });

  it("is asked as often where the restart waits for an approval, and again only by the gate", async () => {
    await using world = await startWorld({
      policy: `${testPolicy}approvals: [{ operations: ["vm.restart"], required: 1 }]\n`,
    });
    const evaluations = await evaluationsIn(async () => {
      await world.olivia.types("ops", "/vm restart web-2");
      const card = await world.slack.until(() =>
        world.amir.seesChannel("ops").messages.find(({ text }) => text.includes("web-2")),
      );
      await world.amir.presses("Approve", { in: card.ts });
      await world.ended();
    });
    expect(evaluations).toEqual([...once("gateway"), ...once("gate")]);
  });
});
