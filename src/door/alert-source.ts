import { hash } from "node:crypto";
import { metrics } from "../commands/vm/metrics.ts";
import { restart } from "../commands/vm/restart.ts";
import { show } from "../commands/vm/show.ts";
import { start } from "../commands/vm/start.ts";
import type { Compute } from "../compute/compute.ts";
import type { Policy } from "../config/policy-file.ts";
import type { Inventory } from "../inventory/inventory.ts";
import { scopeOfChannel } from "../policy/access.ts";
import { type Command, dottedName, type Target } from "../registry/define.ts";
import type { Journal } from "../requests/journal/journal.ts";
import { targetOf } from "../requests/submit/submit.ts";
import type { Owes, Source } from "../slack/deliver/deliver.ts";
import { sharedBy } from "../redis/due-list.ts";
import { isSaid, type Owed, paced } from "../slack/deliver/post-once.ts";
import {
  type Alerts,
  type Overview,
  parseAlert,
  parseOverview,
  type Posted,
  type StoredAlert,
} from "./alerts.ts";
import {
  mostWithControls,
  renderAlert,
  renderEvent,
  renderOverview,
  type View,
} from "./render-alert.ts";

/** Reads of VMs at a time, in a storm too: changes have more use for the compute service. */
const readsAtOnce = 10;
const readWithinMs = 1_000;
const mostListed = 20;
/** A card waits so long for its turn in the channel before its group is told with others (ms). */
const ownCardMs = 3_000;

/**
 * The messages of alerts: a card that is edited, and in its thread what joins it and its end. Where the channel takes no card now,
 * the group joins an overview, which is edited as well.
 */
export function alertSource(options: {
  alerts: Alerts;
  store: Pick<Journal, "freezeState">;
  inventory: Pick<Inventory, "seenIn">;
  compute: { vms: Pick<Compute["vms"], "get"> };
  commands: readonly Command[];
  config: { readonly policy: Policy };
  editMs?: number;
}): Source {
  const { alerts } = options;
  let reading = 0;

  const read: Source["read"] = async (id, fields) => {
    const overview = parseOverview(id, fields);
    const alert = parseAlert(id, fields);
    const { revision, createdAt } = overview ?? alert ?? {};
    if (revision === undefined || createdAt === undefined) return undefined;
    const shared = alert && sharedBy(alert.delivered);
    if (shared !== undefined) await alerts.touch(shared);
    const frozenBy = (await options.store.freezeState())?.by;
    const now = await alerts.now();
    const owed = overview
      ? await overviewOwed(overview, frozenBy, now)
      : alert && shared === undefined && owedOf(alert, frozenBy, now);
    return { createdAt, revision, messages: [], ...owed };
  };

  function owedOf(alert: StoredAlert, frozenBy: string | undefined, now: number) {
    const { record, createdAt, delivered, state, revision } = alert;
    const { channelId, events } = record;
    const { card: standsAt, said } = delivered;
    // Nowhere to tell it, or nothing: its end came first, or Slack has refused it
    if (channelId === "" || events.length === 0 || (isSaid(said["card"]) && !standsAt)) return {};
    const look = `${state}${frozenBy === undefined ? "" : "-frozen"}`;
    const { waitMs, shows } = pacedBy(alert, `${revision}`, look, now);
    const view = (reads = 0) => viewOf(alert, frozenBy, reads);
    const thread = { channelId: standsAt?.channelId ?? channelId, threadTs: standsAt?.ts };
    const told = events.map((event, n): Owed => {
      const render = async () => renderEvent(event, await view());
      const key = `event:${n}`;
      return { key, mark: said[key], place: thread, render, urgency: "alert" };
    });
    const card: Owed = {
      key: "card",
      mark: said["card"],
      place: { channelId },
      render: async () => renderAlert(await view(mostWithControls)),
      shows,
      urgency: "alert",
      covers: told.map(({ key }) => key),
      join: now - createdAt < ownCardMs ? undefined : () => alerts.join(alert),
    };
    return { messages: [card, ...told], waitMs };
  }

  async function overviewOwed(overview: Overview, frozenBy: string | undefined, now: number) {
    const { channelId, delivered, memberIds } = overview;
    const members = await alerts.getMany(memberIds);
    const firing = members.filter(({ state }) => state === "firing");
    const facts = [frozenBy, ...members.map(({ id, revision }) => [id, revision])];
    const version = hash("sha256", JSON.stringify(facts)).slice(0, 16);
    const { waitMs, shows } = pacedBy(overview, version, "overview", now);
    const render = async () => {
      const views = firing.slice(0, mostListed).map((alert) => viewOf(alert, frozenBy, 1));
      return renderOverview(
        await Promise.all(views),
        firing.length,
        members.length - firing.length,
      );
    };
    const mark = delivered.said["card"];
    // It stands for many cards
    const card: Owed = {
      key: "card",
      mark,
      place: { channelId },
      render,
      shows,
      urgency: "result",
    };
    return { messages: [card], waitMs } satisfies Partial<Owes>;
  }

  /** Never the last: results of requests go first. */
  const pacedBy = ({ delivered }: Posted, version: string, look: string, now: number) =>
    paced(delivered, { version, look, isLast: false }, now, options.editMs);

  /** So many of its VMs are read from the compute service: those that can have controls. */
  async function viewOf(alert: StoredAlert, frozenBy: string | undefined, reads: number) {
    const { commands } = options;
    const { policy } = options.config;
    const { source, channelId, vms } = alert.record;
    const { offer = [] } = policy.sources[source] ?? {};
    const wanted = [...[show, metrics, restart, start].map(dottedName), ...offer];
    const offered = wanted.flatMap((one) => commands.find((it) => dottedName(it) === one) ?? []);
    const seen = options.inventory.seenIn(async () => scopeOfChannel(policy, channelId));
    const known = vms.map(async ({ label, id }, n) => {
      const found = await seen.findVm(id, { onlyKnown: true }).catch(() => undefined);
      if (!found || !("found" in found) || found.found.id !== id) return [];
      const target = targetOf(found.found);
      return [[label, { n, target: n < reads ? await asNow(target) : target }] as const];
    });
    const shown = new Map((await Promise.all(known)).flat());
    return { alert, vms: shown, offered, frozenBy, policy } satisfies View;
  }

  /** What the compute service doesn't tell in time is as it is known. */
  async function asNow(known: Target): Promise<Target> {
    if (reading >= readsAtOnce) return known;
    reading += 1;
    const signal = AbortSignal.timeout(readWithinMs);
    const vm = await options.compute.vms.get(known.id, { signal }).catch(() => undefined);
    reading -= 1;
    return { ...known, status: vm?.status ?? known.status };
  }

  return { kind: "alert", outbox: alerts.outbox, atOnce: 4, read };
}
