import type { Inventory } from "./inventory/inventory.ts";
import type { Queues } from "./jobs/queues.ts";
import { messageOf } from "./errors.ts";
import { partNames } from "./outages/outage.ts";
import type { OutageStore } from "./outages/store.ts";
import type { Watch } from "./outages/watch.ts";
import type { RedisCheck, RedisClient } from "./redis.ts";
import type { StatusLine } from "./registry/define.ts";
import type { Store } from "./requests/store.ts";
import { duration } from "./messages/text.ts";
import type { Web } from "./slack/web.ts";
import type { Telemetry } from "./telemetry.ts";

/** How the installation is doing: for `/gatehouse status`, `/readyz` and `/metrics`. */
export interface Status {
  lines(): Promise<readonly StatusLine[]>;
  /** Why this process can't work now, if it can't: only what it can't do without. */
  problem(): Promise<string | undefined>;
  measure(telemetry: Telemetry): Promise<void>;
}

/** How long an answer from Slack counts (ms): probes come every few seconds, auth.test must not. */
const slackCheckMs = 15_000;

export function createStatus(on: {
  redis: RedisClient;
  redisCheck: RedisCheck;
  web: Web;
  inventory: Inventory;
  store: Store;
  queues: Queues;
  outages: Pick<OutageStore, "state">;
  watch: Pick<Watch, "redisAwayMs">;
}): Status {
  let slack: { at: number; problem: string | undefined } | undefined;

  async function slackProblem(): Promise<string | undefined> {
    if (slack && performance.now() - slack.at < slackCheckMs) return slack.problem;
    const answer = await on.web.call("auth.test");
    const problem = answer.ok
      ? undefined
      : answer.kind === "refused"
        ? `Slack refuses: ${answer.error}`
        : `Slack: ${answer.kind}`;
    slack = { at: performance.now(), problem };
    return problem;
  }

  async function redisLine(): Promise<StatusLine> {
    try {
      await on.redis.ping();
    } catch (error) {
      return {
        name: "Redis",
        ok: false,
        detail: `${messageOf(error)}. Nothing can be changed until it is back.`,
      };
    }
    if (on.redisCheck.kind === "ok")
      return { name: "Redis", ok: true, detail: "answers, keeps what it is told" };
    return { name: "Redis", ok: false, detail: on.redisCheck.sentence };
  }

  async function inventoryLine(): Promise<StatusLine> {
    const { refreshedAt, stale, vms, projects, unread } = await on.inventory.state();
    const read =
      refreshedAt === undefined ? "never read" : `read ${duration(Date.now() - refreshedAt)} ago`;
    const missing = unread.length > 0 ? `; not readable: ${unread.slice(0, 5).join(", ")}` : "";
    return {
      name: "Compute service",
      ok: !stale && refreshedAt !== undefined && unread.length === 0,
      detail: `${vms} VMs in ${projects} projects, ${read}${missing}`,
    };
  }

  async function changesLine(): Promise<StatusLine> {
    const frozen = await on.store.freezeState();
    if (!frozen) return { name: "Changes", ok: true, detail: "allowed" };
    return {
      name: "Changes",
      ok: false,
      detail: `frozen by ${frozen.by}${frozen.reason ? `: ${frozen.reason}` : ""}`,
    };
  }

  async function workLine(): Promise<StatusLine> {
    const [open, unsaid, counts] = await Promise.all([
      on.store.openCount(),
      on.store.outboxDepth(),
      on.queues.counts(),
    ]);
    const waiting = (counts["waiting"] ?? 0) + (counts["delayed"] ?? 0);
    return {
      name: "Work",
      ok: unsaid < 100,
      detail: `${open} requests open, ${waiting} jobs waiting, ${unsaid} messages to deliver`,
    };
  }

  /** What is away now and since when, or what was away last. */
  async function outagesLine(): Promise<StatusLine> {
    const awayMs = on.watch.redisAwayMs();
    if (awayMs !== undefined)
      return {
        name: "Outages",
        ok: false,
        detail: `Redis has been away for ${duration(awayMs)}. What was refused is told when it is back.`,
      };
    const [{ open, last }, now] = await Promise.all([on.outages.state(), on.store.now()]);
    const away = open.map(
      ({ part, since }) => `${partNames[part]} has been away for ${duration(now - since)}`,
    );
    if (away.length > 0)
      return {
        name: "Outages",
        ok: false,
        detail: `${away.join("; ")}. Each channel is told afterwards what ran and what did not.`,
      };
    const told = last
      ? `none now; ${partNames[last.part]} was away for ${duration(last.until - last.since)}, until ${duration(now - last.until)} ago`
      : "none";
    return { name: "Outages", ok: true, detail: told };
  }

  return {
    async lines() {
      const slackWhy = await slackProblem();
      const slackLine: StatusLine = {
        name: "Slack",
        ok: slackWhy === undefined,
        detail: slackWhy ?? "answers",
      };
      const rows = await Promise.allSettled([
        redisLine(),
        inventoryLine(),
        changesLine(),
        workLine(),
        outagesLine(),
      ]);
      const read = rows.map((row, index): StatusLine =>
        row.status === "fulfilled"
          ? row.value
          : {
              name: ["Redis", "Compute service", "Changes", "Work", "Outages"][index] ?? "",
              ok: false,
              detail: messageOf(row.reason),
            },
      );
      return [slackLine, ...read];
    },
    async problem() {
      try {
        await on.redis.ping();
      } catch (error) {
        return `Redis: ${messageOf(error)}`;
      }
      return slackProblem();
    },
    async measure(telemetry) {
      try {
        telemetry.outboxDepth.set(await on.store.outboxDepth());
        telemetry.frozen.set((await on.store.freezeState()) ? 1 : 0);
        const { refreshedAt } = await on.inventory.state();
        if (refreshedAt !== undefined)
          telemetry.inventoryAge.set((Date.now() - refreshedAt) / 1000);
      } catch {
        // Redis is away: the figures of this process are still worth having
      }
    },
  };
}
