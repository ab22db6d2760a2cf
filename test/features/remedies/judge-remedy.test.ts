import { describe, expect, it } from "vitest";
import { type AlertOnVm, isRemedy } from "../../../src/features/alert-part.ts";
import { judgeRemedy, sumUp } from "../../../src/features/remedies/judge-remedy.ts";
import { adviceOn, renderStillFiring } from "../../../src/features/remedies/render-remedy.ts";
import { commands } from "../../../src/features/index.ts";
import { requestable } from "../../../src/registry/define.ts";

const changes = requestable(commands);
const commandNamed = (name: string) => {
  const found = changes.find((command) => command.name === name);
  if (!found) throw new Error(`no ${name}`);
  return found;
};
const restart = commandNamed("vm restart");

/** When the attempt's call was sent, and when what ended since has ended. */
const sentAt = 10;
const endsAt = 20;

const standing = (...states: readonly AlertOnVm["state"][]) => ({
  vm: "web-2",
  alerts: states.map((state) => ({
    name: "HighCpu",
    state,
    since: 1,
    endedAt: state === "firing" ? undefined : endsAt,
  })),
  place: undefined,
  links: [],
});
const onTime = { sentAt, lateByMs: 0, isSuperseded: false };

describe("what became of an alert after an attempt to end it", () => {
  it("is judged for each alert by whether it fires then", () => {
    const judged = (...states: readonly AlertOnVm["state"][]) =>
      judgeRemedy({ HighCpu: 1 }, { now: standing(...states), ...onTime })["HighCpu"];
    expect(judged("ended")).toBe("helped");
    expect(judged("firing")).toBe("failed");
    expect(judged("ended", "firing")).toBe("failed");
    expect(judged("unheard")).toBe("unclear");
    expect(judged("ended", "unheard")).toBe("unclear");
    expect(judged()).toBe("unclear");
    expect(judgeRemedy({ HighCpu: 1 }, { now: undefined, ...onTime })).toEqual({
      HighCpu: "unclear",
    });
  });

  it("isn't known to have helped when it ended before the call was sent", () => {
    const judged = (...ends: readonly number[]) => {
      const alerts = ends.map((endedAt) => ({
        name: "HighCpu",
        state: "ended" as const,
        since: 1,
        endedAt,
      }));
      return judgeRemedy({ HighCpu: 1 }, { now: { ...standing(), alerts }, ...onTime })["HighCpu"];
    };
    expect(judged(sentAt - 1)).toBe("unclear");
    expect(judged(sentAt)).toBe("helped");
    // An alert of which the VM has several is over when the last one is.
    expect(judged(sentAt - 1, sentAt + 1)).toBe("helped");
  });

  it("isn't known to have helped when a later change followed, or when it was looked at late", () => {
    const ended = { now: standing("ended"), ...onTime };
    const firing = { now: standing("firing"), ...onTime };
    for (const more of [{ isSuperseded: true }, { lateByMs: 3600_000 }]) {
      expect(judgeRemedy({ HighCpu: 1 }, { ...ended, ...more })["HighCpu"]).toBe("unclear");
      expect(judgeRemedy({ HighCpu: 1 }, { ...firing, ...more })["HighCpu"]).toBe("failed");
    }
  });
});

describe("what earlier attempts say", () => {
  const said = (...verdicts: readonly ("helped" | "failed" | "unclear")[]) =>
    sumUp(verdicts.map((verdict, n) => ({ command: "vm restart", verdict, at: n }))).map(
      (sum) => adviceOn(sum, restart).text,
    );

  it("is how often the command failed in a row, or that it ended the alert the last time", () => {
    expect(said("failed")).toEqual(["A restart didn't help the last time"]);
    expect(said("failed", "unclear", "failed", "helped", "failed")).toEqual([
      "A restart didn't help the last 2 times",
    ]);
    expect(said("helped", "failed")).toEqual(["Last time a restart ended it"]);
    expect(said("unclear")).toEqual([]);
    expect(said()).toEqual([]);
  });

  it("is said of each command", () => {
    const past = ["vm restart", "vm resize", "vm restart"].map((command, at) => ({
      command,
      verdict: command === "vm resize" ? ("helped" as const) : ("failed" as const),
      at,
    }));
    expect(sumUp(past)).toEqual([
      { command: "vm restart", failures: 2 },
      { command: "vm resize", failures: 0, helpedAt: 1 },
    ]);
  });

  it("is only of commands that change the VM itself", () => {
    const remedies = changes.filter(isRemedy).map(({ name }) => name);
    expect(remedies.toSorted()).toEqual([
      "vm resize",
      "vm restart",
      "vm restore",
      "vm start",
      "vm stop",
    ]);
  });
});

describe("the message about an alert that still fires", () => {
  const still = {
    names: ["HighCpu"],
    alerts: standing("firing"),
    requester: "U0OLIVIA",
    command: restart,
    afterMs: 301_200,
    isAgain: false,
    failedBefore: 0,
  };
  const words = (more: Partial<typeof still> = {}) =>
    renderStillFiring({ ...still, ...more }).blocks.map((block) =>
      block.type === "section" ? block.text?.text : block.type,
    )[0];

  it("mentions the requester, and says what didn't help, and how often", () => {
    expect(words()).toBe(
      "🔥 <@U0OLIVIA> *HighCpu on web-2 still fires, 5 min after the restart.* A restart didn't help.",
    );
    expect(words({ failedBefore: 1 })).toContain("didn't help; it didn't the last time either.");
    expect(words({ failedBefore: 2, names: ["HighCpu", "Hot"] })).toBe(
      "🔥 <@U0OLIVIA> *HighCpu, Hot on web-2 still fire, 5 min after the restart.* A restart didn't help; it didn't the last 2 times either.",
    );
    expect(words({ isAgain: true })).toContain("web-2 fires again, 5 min after the restart.");
  });
});
