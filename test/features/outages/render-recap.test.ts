import { describe, expect, it } from "vitest";
import { commands } from "../../../src/features/index.ts";
import { signOfService } from "../../../src/fleet/compute/compute.ts";
import type { Past } from "../../../src/features/outages/outages.ts";
import { renderRecap, retype } from "../../../src/features/outages/render-recap.ts";
import { signOfSlack } from "../../../src/slack/web.ts";
import { isChange } from "../../../src/registry/define.ts";
import { shownText } from "../../commands/shown-text.ts";
import { vmTarget, called, storedIn, stageOf } from "../../core/asking.ts";
import type { StoredRequest } from "../../../src/core/request/stored-request.ts";
import type { Stage } from "../../../src/core/request/stage.ts";

const changes = commands.filter(isChange);
const since = Date.UTC(2026, 10, 21, 2, 10);
const outage: Past = {
  id: `slack-${since}`,
  part: "slack",
  since,
  until: since + 31 * 60_000,
};
const sent = called({ sentAt: since + 55_000 });

function request(name: string, stage: Stage): StoredRequest {
  return storedIn(stage, {
    record: {
      id: `r-${name}`,
      command: "vm restart",
      input: { vms: [`vm-payments-${name}`] },
      target: vmTarget(name),
      requester: { id: "U0OLIVIA", teamId: "T0", name: "olivia" },
      channelId: "C01OPS",
      origin: { kind: "typed", interaction: "1.1" },
      policyVersion: "v1",
      createdAt: since,
      runsUntil: since + 600_000,
    },
    changedAt: since + 60_000,
  });
}

const shown = (...args: Parameters<typeof renderRecap>) => {
  const recap = renderRecap(...args);
  if (!recap) throw new Error("nothing to tell");
  return shownText(recap).replaceAll(/<!date\^\d+\^[^|>]*\|([^>]*)>/g, "$1");
};

describe("a recap", () => {
  it("names what ran without approval and what was restored among many others, with who approved it", () => {
    const restored = (name: string, some: Partial<StoredRequest["record"]>): StoredRequest => {
      const one = request(name, stageOf("done", sent));
      const record = { ...one.record, command: "vm restore", input: { snapshot: "s-1" }, ...some };
      return { ...one, record };
    };
    const approval = {
      required: 1,
      expiresAt: since + 900_000,
      digest: "d",
      why: "the rule",
      evidence: [],
    };
    const vote = { voterId: "U0AMIR", name: "amir", vote: "approve" as const, at: since };
    const all = [
      ...Array.from({ length: 30 }, (_, n) => request(`x${n}`, stageOf("failed", sent))),
      restored("db-1", { breakGlass: true }),
      { ...restored("db-2", { approval }), votes: [vote as never] },
    ];
    const said = shown(outage, all, [], changes);
    expect(said).toMatch(
      /✅ \*olivia\* restored `db-1` from s-1 .* 🚨 without approval \(break-glass\); nobody has signed the review\. · `r-db-1`/,
    );
    expect(said).toMatch(
      /✅ \*olivia\* restored `db-2` from s-1 .*; approved by amir\. · `r-db-2`/,
    );
    expect(said).toContain("… and 17 more");
  });

  it("counts first what ran, and lists first what needs a person", () => {
    const all = [
      request("a", stageOf("done", sent)),
      request("b", stageOf("expired", { why: "it could not begin in time" })),
      request("c", stageOf("unknown", sent)),
      request("d", stageOf("denied")),
      request("e", stageOf("authorized", { why: "the service can't be reached" })),
      request("f", stageOf("draft")),
      request("g", stageOf("failed", sent)),
    ];
    const refused = [
      {
        id: "1",
        channelId: "C",
        userId: "U0A",
        teamId: "T",
        words: "/vm stop `x` <!here>",
        name: "amir",
      },
      { id: "2", channelId: "C", userId: "U0B", teamId: "T" },
    ];
    expect(shown(outage, all, refused, changes).split("\n")).toEqual([
      "*Slack was unavailable* 2:10 AM UTC–2:41 AM UTC (31 min). Meanwhile: 1 request ran, 1 failed, 4 did not, 1 outcome unknown, 1 still in progress, 1 still waiting for approval.",
      "❓ *olivia* asked for the restart of `c`: outcome unknown. Check it, then record on its message what happened. · `r-c`",
      "❌ *olivia* asked for the restart of `g`, but it failed: the compute service reports gone. · `r-g`",
      "❌ *olivia* asked for the restart of `b`, but it expired before it started: it could not begin in time. Again: `/vm restart payments/b` · `r-b`",
      "❌ *olivia* asked for the restart of `d`, but someone denied it. · `r-d`",
      "❌ `/vm stop ˋxˋ &lt;!here&gt;` from amir was refused: nothing was done.",
      "❌ A button or form from `U0B` was refused: nothing was done.",
      "⏳ *olivia* asked for the restart of `e`: waiting to start (the service can't be reached). · `r-e`",
      "⏳ *olivia* asked for the restart of `f`: waiting for approval. · `r-f`",
      "✅ *olivia* restarted `a` in 5 s. · `r-a`",
    ]);
  });

  it("shows fifteen lines and counts the rest; the counts at the top are of all", () => {
    const text = shown(
      outage,
      Array.from({ length: 40 }, (_, n) => request(`vm-${n}`, stageOf("done", sent))),
      [],
      changes,
    );
    expect(text).toContain("Meanwhile: 40 requests ran.");
    expect(text.match(/✅/g)).toHaveLength(15);
    expect(text).toContain("… and 25 more");
  });

  it("counts apart what may have been taken, and what was refused and so has no message", () => {
    const refused = Array.from({ length: 21 }, (_, n) => ({
      id: String(n),
      channelId: "C",
      userId: "U0A",
      teamId: "T",
      words: `/vm stop vm-${n}`,
      name: "amir",
      mayRun: n === 20,
    }));
    const all = ["a", "b"].map((vm) => request(vm, stageOf("done", sent)));
    const [head, first, ...rest] = shown(outage, all, refused, changes).split("\n");
    expect(head).toContain("Meanwhile: 2 requests ran, 1 may have been taken, 20 did not.");
    expect(first).toBe(
      "❓ `/vm stop vm-20` from amir may have been taken: where no card appeared, nothing was done.",
    );
    expect(rest.at(-1)).toBe(
      "… and 8 more: 2 requests with their own messages here, 6 refused commands. `/gatehouse jobs` lists what is open.",
    );
  });

  it("is undefined when nothing happened", () => {
    expect(renderRecap(outage, [], [], changes)).toBeUndefined();
  });
});

describe("words to type again", () => {
  it("name the target and every argument, quoted if necessary", () => {
    const resize = changes.find(({ name }) => name === "vm resize");
    const snapshot = changes.find(({ name }) => name === "vm snapshot");
    if (!resize || !snapshot) throw new Error("commands are missing");
    const target = vmTarget("web-1");
    expect(retype(resize, { target, input: { vm: target.id, cpu: 4, memory: 16 } })).toBe(
      "/vm resize payments/web-1 --cpu 4 --memory 16",
    );
    expect(retype(snapshot, { target, input: { vm: target.id, name: "before the move" } })).toBe(
      '/vm snapshot payments/web-1 "before the move"',
    );
  });
});

describe("the signs of an outage", () => {
  it("are messages that Slack doesn't take: a look-up that works proves nothing", () => {
    expect(signOfSlack("chat.postMessage", "lost")).toBe("silence");
    expect(signOfSlack("chat.update", "unreachable")).toBe("silence");
    expect(signOfSlack("chat.postMessage", "limited")).toBe("answer");
    expect(signOfSlack("chat.postMessage", "refused")).toBe("answer");
    expect(signOfSlack("conversations.replies", "lost")).toBe("silence");
    expect(signOfSlack("conversations.open", "lost")).toBe("silence");
    expect(signOfSlack("conversations.replies", "ok")).toBeUndefined();
    expect(signOfSlack("users.info", "lost")).toBeUndefined();
  });

  it("are no answer from the service at all, or a control read that fails: one broken record is no outage", () => {
    expect(signOfService("GET /v1/vms/{vm_id}", "unreachable", "status")).toBeUndefined();
    expect(signOfService("GET /v1/projects", "unreachable", "status")).toBe("silence");
    expect(signOfService("GET /v1/vms/{vm_id}", "unreachable", "connect")).toBe("silence");
    expect(signOfService("GET /v1/vms/{vm_id}", "unreachable", "aborted")).toBeUndefined();
    expect(signOfService("POST /v1/vms/{vm_id}/restart", "unclear", "timeout")).toBeUndefined();
    expect(signOfService("GET /v1/vms/{vm_id}", "not-found", "status")).toBe("answer");
    expect(signOfService("GET /v1/vms/{vm_id}", undefined, undefined)).toBe("answer");
  });
});
