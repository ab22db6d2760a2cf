import { hash } from "node:crypto";
import { restart } from "../commands/vm/restart.ts";
import { metrics } from "../commands/vm/metrics.ts";
import { show } from "../commands/vm/show.ts";
import { start } from "../commands/vm/start.ts";
import type { Compute } from "../compute/compute.ts";
import type { Policy } from "../config/policy-file.ts";
import type { Inventory } from "../inventory/inventory.ts";
import { scopeOfChannel } from "../policy/access.ts";
import type { Fields } from "../redis/redis.ts";
import { type Command, dottedName, type Target } from "../registry/define.ts";
import type { Journal } from "../requests/journal/journal.ts";
import { targetOf } from "../requests/submit/submit.ts";
import type { Owes, Source } from "../slack/deliver/deliver.ts";
import { isSaid, type Owed, type Shows } from "../slack/deliver/post-once.ts";
import {
  type Alerts,
  type Overview,
  overviewOf,
  parseAlert,
  parseOverview,
  type StoredAlert,
} from "./alerts.ts";
import {
  renderAlert,
  renderEvent,
  renderOverview,
  type ShownVm,
  type View,
} from "./render-alert.ts";

/** The minimum between edits that only show progress: Slack allows 50 edits a minute for the workspace. */
const usualEditMs = 4000;
/** VMs of one message that are read; the rest are as the inventory knows them. */
const mostRead = 5;
/** Reads of VMs at a time, in a storm too: changes have more use for the compute service. */
const readsAtOnce = 10;
const readWithinMs = 1_000;
const mostListed = 20;

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
  readonly policy: Policy;
  visibilityTimeoutMs: number;
  editMs?: number;
}): Source {
  const { alerts, editMs = usualEditMs } = options;
  const { outbox } = alerts;
  let reading = 0;

  async function read(id: string, fields: Fields): Promise<Owes | undefined> {
    const overview = parseOverview(id, fields);
    if (overview) return readOverview(overview);
    const alert = parseAlert(id, fields);
    if (!alert) return undefined;
    const { createdAt, revision, channelId, events } = alert;
    const shared = overviewOf(alert);
    if (shared !== undefined) await alerts.touch(shared);
    const isSilent = shared !== undefined || channelId === "" || events.length === 0;
    if (isSilent) return { createdAt, revision, messages: [] };
    const frozenBy = (await options.store.freezeState())?.by;
    return { createdAt, revision, ...owedOf(alert, frozenBy, await alerts.now()) };
  }

  function owedOf(alert: StoredAlert, frozenBy: string | undefined, now: number) {
    const { channelId, delivered, events, state, revision } = alert;
    const { card: standsAt, said } = delivered;
    const look = frozenBy === undefined ? state : `${state}-frozen`;
    const { waitMs, ...shows } = showsOf(delivered, `${revision}`, look, now, editMs);
    const view = async () => viewOf(alert, frozenBy);
    const threadTs = standsAt?.ts;
    const told = events.map((event, n): Owed => ({
      key: `event:${n}`,
      mark: said[`event:${n}`],
      place: { channelId: standsAt?.channelId ?? channelId, threadTs },
      render: async () => renderEvent(event, await view()),
      urgency: "card",
    }));
    const card: Owed = {
      key: "card",
      mark: said["card"],
      place: { channelId },
      render: async () => renderAlert(await view()),
      shows,
      urgency: "card",
      covers: told.map(({ key }) => key),
      join: () => alerts.join(alert),
    };
    return { messages: isSaid(said["card"]) && !standsAt ? [] : [card, ...told], waitMs };
  }

  async function viewOf(
    alert: StoredAlert,
    frozenBy: string | undefined,
    mostNow = mostRead,
  ): Promise<View> {
    const { policy, commands } = options;
    const { offer = [] } = policy.sources[alert.source] ?? {};
    const wanted = [...[show, metrics, restart, start].map(dottedName), ...offer];
    const offered = wanted.flatMap(
      (one) => commands.find((command) => dottedName(command) === one) ?? [],
    );
    const vms = new Map<string, ShownVm>();
    await Promise.all(
      alert.vms.map(async ({ label, id }, n) => {
        const target = await targetNow(alert.channelId, id, n < mostNow);
        if (target) vms.set(label, { n, target });
      }),
    );
    return { alert, vms, offered, frozenBy, policy };
  }

  /** As the channel may know it; undefined for what isn't there for it. */
  async function targetNow(
    channelId: string,
    id: string,
    isRead: boolean,
  ): Promise<Target | undefined> {
    const scope = scopeOfChannel(options.policy, channelId);
    const seen = options.inventory.seenIn(async () => scope);
    const found = await seen.findVm(id, { onlyKnown: true }).catch(() => undefined);
    if (!found || !("found" in found) || found.found.id !== id) return undefined;
    const known = targetOf(found.found);
    if (!isRead || reading >= readsAtOnce) return known;
    reading += 1;
    try {
      const signal = AbortSignal.timeout(readWithinMs);
      return { ...known, status: (await options.compute.vms.get(id, { signal })).status };
    } catch {
      // Of what the compute service doesn't tell, the last that is known
      return known;
    } finally {
      reading -= 1;
    }
  }

  async function readOverview(overview: Overview): Promise<Owes> {
    const { channelId, delivered, createdAt, revision } = overview;
    const members = await alerts.getMany(overview.memberIds);
    const firing = members.filter(({ state }) => state === "firing");
    const counts = { firing: firing.length, ended: members.length - firing.length };
    const frozenBy = (await options.store.freezeState())?.by;
    const look = hash(
      "sha256",
      JSON.stringify([frozenBy, members.map(({ id, revision: at }) => [id, at])]),
    ).slice(0, 16);
    const { waitMs, ...shows } = showsOf(delivered, look, "overview", await alerts.now(), editMs);
    const card: Owed = {
      key: "card",
      mark: delivered.said["card"],
      place: { channelId },
      async render() {
        const listed = firing.slice(0, mostListed);
        const views = listed.map((alert) => viewOf(alert, frozenBy, 0));
        return renderOverview(await Promise.all(views), counts);
      },
      shows,
      // It stands for many cards
      urgency: "result",
    };
    return { createdAt, revision, messages: [card], waitMs };
  }

  const { visibilityTimeoutMs } = options;
  return { kind: "alert", outbox, atOnce: 4, visibilityTimeoutMs, read };
}

/** What a card shows now, and how long an edit that shows no other state must wait (ms). */
function showsOf(
  { card: standsAt, shown: before }: StoredAlert["delivered"],
  version: string,
  look: string,
  now: number,
  editMs: number,
): Shows & { waitMs: number } {
  const [shownVersion, shownLook, shownAt] = before.split(" ");
  const isSame = shownVersion === version && shownLook === look;
  const ago = now - Number(shownAt);
  const mustWait = standsAt && !isSame && shownLook === look && ago >= 0 && ago < editMs;
  const next = isSame || mustWait ? before : `${version} ${look} ${now}`;
  // Never the last: results of requests go first
  const shows = { field: "shown", before, now: next, standsAt, isLast: false };
  return { ...shows, waitMs: mustWait ? editMs - ago : 0 };
}
