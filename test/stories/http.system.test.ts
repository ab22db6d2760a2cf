import { describe, expect, it } from "vitest";
import { lineOf } from "../faults/check/checker.ts";
import { fresh } from "../faults/rows/row.ts";
import { startStage } from "../faults/stage/stage.ts";

describe("Gatehouse over HTTP", () => {
  it("loses nothing when its gateway is killed right after it answered Slack: the next one does it, once", async () => {
    await using stage = await startStage({ receive: "http", gateways: 0, direct: true });
    const doomed = await stage.addBot("gateway", { slot: "doomed" });
    await doomed.arm({ point: "ack", do: "kill" });
    const vm = await fresh(stage)("vm restart");
    await stage.request("vm restart", vm);
    expect(await doomed.exited).toBe("SIGKILL");
    stage.faults += 1;
    await stage.addBot("gateway", { slot: "next" });
    const ended = await stage.until(({ isFinal }) => isFinal);
    expect(ended).toMatchObject({ command: "vm restart", target: vm, state: "done" });
    await stage.quiet();
    const verdict = await stage.check();
    expect(verdict.findings, lineOf(verdict)).toEqual([]);
    expect(await stage.service.writes()).toHaveLength(1);
  });
});
