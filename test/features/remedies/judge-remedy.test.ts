import { describe, expect, it } from "vitest";
import { type AlertOnVm, type AlertsOnVm, isRemedy } from "../../../src/features/alert-part.ts";
import { type Verdict, judgeRemedy, sumUp } from "../../../src/features/remedies/judge-remedy.ts";
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

/** When the attempt's call was sent, when what ended since has ended, and when it is time to judge. */
const sentAt = 10;
const endsAt = 20;
const dueAt = 30;

type Stands = Partial<AlertOnVm> & Pick<AlertOnVm, "state">;
const standing = (...all: readonly Stands[]): AlertsOnVm => ({
  vm: "web-2",
  alerts: all.map((one) => ({
    name: "HighCpu",
    since: 1,
    heardAt: dueAt,
    isLeftOut: false,
    endedAt: one.state === "firing" ? undefined : endsAt,
    ...one,
  })),
  place: undefined,
  source: "prometheus",
  changedAt: dueAt,
  links: [],
});
const firing = { state: "firing" } as const;
const ended = { state: "ended" } as const;
const unheard = { state: "unheard" } as const;

describe("what became of an alert after an attempt to end it", () => {
  const judged = (now: AlertsOnVm | undefined, isExplained = false) =>
    judgeRemedy({ HighCpu: 1 }, { now, sentAt, dueAt, isExplained })["HighCpu"];

  it("is judged for each alert by whether it fires then", () => {
    expect(judged(standing(ended))).toBe("helped");
    expect(judged(standing(firing))).toBe("failed");
    expect(judged(standing(ended, firing))).toBe("failed");
    expect(judged(standing(unheard))).toBe("unclear");
    expect(judged(standing(ended, unheard))).toBe("unclear");
    expect(judged(standing())).toBe("unclear");
    expect(judged(undefined)).toBe("unclear");
  });

  it("isn't known while its source hasn't spoken since it was time to judge", () => {
    expect(judged(standing({ ...firing, heardAt: dueAt - 1 }))).toBe("unheard");
  });

  it("is when it ended by its source, not when that was told", () => {
    const at = (...ends: readonly (number | undefined)[]) =>
      judged(standing(...ends.map((endedAt) => ({ ...ended, endedAt }))));
    expect(at(sentAt - 1)).toBe("early");
    expect(at(sentAt)).toBe("helped");
    expect(at(dueAt)).toBe("helped");
    expect(at(dueAt + 1)).toBe("failed");
    expect(at(undefined)).toBe("unclear");
    // An alert of which the VM has several is over when the last one is.
    expect(at(sentAt - 1, sentAt + 1)).toBe("helped");
  });

  it("is another firing's, once it ended and fires anew", () => {
    expect(judged(standing({ ...firing, since: endsAt }))).toBe("unclear");
    // That firing is over, too: it isn't the one that the attempt was about.
    expect(judged(standing({ ...ended, since: sentAt + 1 }))).toBe("unclear");
    expect(judged(standing({ ...ended, since: sentAt }))).toBe("helped");
    const early = { ...ended, endedAt: sentAt - 1 };
    expect(judged(standing(early, { ...ended, since: sentAt + 1 }))).toBe("early");
  });

  it("isn't known to be by the attempt, where something else explains it", () => {
    expect(judged(standing(ended), true)).toBe("explained");
    expect(judged(standing(firing), true)).toBe("failed");
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
    alerts: standing(firing),
    requester: "U0OLIVIA",
    command: restart,
    judgment: {
      verdicts: { HighCpu: "failed", Hot: "failed" } as Record<string, Verdict>,
      changedAt: 1_000,
      judgedAt: 302_200,
    },
    isAgain: false,
    failedBefore: 0,
  };
  const words = (more: Partial<typeof still> = {}) =>
    renderStillFiring({ ...still, ...more }).blocks.map((block) =>
      block.type === "section" ? block.text?.text : block.type,
    )[0];

  it("doesn't say that it didn't help, as long as the source hasn't spoken since", () => {
    const judgment = { ...still.judgment, verdicts: { HighCpu: "unheard" as const } };
    expect(words({ judgment })).toBe(
      "🔥 <@U0OLIVIA> *HighCpu on web-2 still fires, 5 min after the restart, as far as prometheus has told: it hasn't spoken since the restart.*",
    );
    const alerts = standing({ ...firing, heardAt: 61_000 });
    expect(words({ judgment, alerts })).toMatch(/ has told: it last spoke at [^*]+\.\*$/);
    // It spoke of others of the group.
    const leftOut = standing({ ...firing, heardAt: 61_000, isLeftOut: true });
    expect(words({ judgment, alerts: leftOut })).toMatch(
      / told: it last reported this at [^*]+\.\*$/,
    );
    const before = standing({ ...firing, heardAt: 1, isLeftOut: true });
    expect(words({ judgment, alerts: before })).toMatch(
      / has told: it hasn't reported this since the restart\.\*$/,
    );
  });

  it("mentions the requester, and says what didn't help, and how often", () => {
    expect(words()).toBe(
      "🔥 <@U0OLIVIA> *HighCpu on web-2 still fires, 5 min after the restart.* A restart didn't help.",
    );
    expect(words({ failedBefore: 1 })).toContain("didn't help; it didn't the last time either.");
    expect(words({ failedBefore: 2, names: ["HighCpu", "Hot"] })).toBe(
      "🔥 <@U0OLIVIA> *HighCpu, Hot on web-2 still fire, 5 min after the restart.* A restart didn't help; it didn't the last 2 times either.",
    );
    expect(
      words({ isAgain: true, judgment: { ...still.judgment, verdicts: { HighCpu: "unclear" } } }),
    ).toBe("🔥 <@U0OLIVIA> *HighCpu on web-2 fires again, 5 min after the restart.*");
  });
});
