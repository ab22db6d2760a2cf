import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import type { Markdown } from "../messages/text.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { faceMark, faceOf, isQuiet, noticesDue } from "../requests/face.ts";
import { renderCard } from "../requests/render-card.ts";
import { renderNotice } from "../requests/render-result.ts";
import type { StoredRequest } from "../requests/record.ts";
import type { Store } from "../requests/store.ts";
import type { Poster } from "./post.ts";
import { isSaid } from "./post-once.ts";

/**
 * Brings Slack up to date with the journal. The outbox holds the ids of requests whose messages may be behind; this
 * compares what should be said with what was said and makes the missing calls, in order. It can be stopped anywhere:
 * an edit may be repeated, and a post whose answer was lost is looked up before it is made again.
 */
export interface Delivery {
  /** Something moved in this process: don't wait for the next look. */
  nudge(): void;
  close(deadlineMs: number): Promise<void>;
}

const atOnce = 8;
/** What only another version can deliver is left to it for so long, and must not wait long for it (ms). */
const notOursMs = 1000;

export function startDelivery(options: {
  store: Store;
  poster: Poster;
  commands: readonly ChangeCommand[];
  /** Who is called when something waits for approval: ids of people and groups. */
  approvers: readonly string[];
  /** Called at least once for each request that has ended, before its result is told. */
  afterwards(request: StoredRequest): Promise<void>;
  /** What a result says beyond the request itself: whether the VM is attested again. */
  addendum(request: StoredRequest): Promise<Markdown | undefined>;
  /** How often the outbox is looked at when nothing nudges (ms). */
  everyMs: number;
  /**
   * Out of sight for others while one process is at it (ms). When that one takes longer, or died, another goes on: marks
   * keep the two apart.
   */
  hiddenMs: number;
  log: Log;
  at(point: "post", request: string): Promise<void>;
}): Delivery {
  const { store, poster, log } = options;
  const closing = new AbortController();
  let nudged = Promise.withResolvers<void>();
  const inFlight = new Map<string, Promise<void>>();

  async function deliver(id: string): Promise<void> {
    const request = await store.get(id);
    if (!request) {
      // Gone, or written by a newer version: that one delivers it, as soon as it is the one that looks
      if (!(await store.delivered(id, -1))) await store.deliverLater(id, notOursMs);
      return;
    }
    const command = options.commands.find(({ name }) => name === request.record.command);
    if (!command) return store.deliverLater(id, notOursMs);
    const waitMs = await bringUpToDate(request, command);
    if (waitMs > 0) await store.deliverLater(id, waitMs);
    else await store.delivered(id, request.revision);
  }

  /** 0 when everything due has been said, else when to come back. */
  async function bringUpToDate(request: StoredRequest, command: ChangeCommand): Promise<number> {
    const { delivered } = request;
    const notices = noticesDue(request).filter((notice) => !isSaid(delivered.said[notice]));
    if (request.final && delivered.said["afterwards"] === undefined) {
      await options.afterwards(request);
      await store.setDelivered(request.record.id, { "said:afterwards": "1" });
    }
    if (isQuiet(request)) return 0;
    const mark = faceMark(request);
    if (delivered.face !== mark) {
      const waitMs = await poster.card(
        request,
        renderCard(request, command, options.approvers),
        mark,
        faceOf(request) === "ended",
      );
      if (waitMs > 0) return waitMs;
    }
    const placed = (await store.get(request.record.id)) ?? request;
    if (placed.state === "draft" && placed.delivered.fallback) return nobodyCanApprove(placed);
    for (const notice of notices) {
      // The card takes a while, and another process may have gone on meanwhile
      if (isSaid(placed.delivered.said[notice])) continue;
      await options.at("post", request.record.id);
      const addendum = notice === "result" ? await options.addendum(placed) : undefined;
      const rendered: Message = renderNotice(notice, placed, command, addendum);
      const waitMs = await poster.notice(placed, notice, rendered);
      if (waitMs > 0) return waitMs;
    }
    return 0;
  }

  /** Its card is where nobody but the asker sees it, so nobody would ever answer: better said now than in 15 minutes. */
  async function nobodyCanApprove(request: StoredRequest): Promise<number> {
    const why = "I can't post in this channel, so nobody could approve it";
    const hint = "Write /invite @gatehouse there, and ask again.";
    await store.move(request, {
      state: "cancelled",
      progress: { ...request.progress, why, hint },
      why,
    });
    return 1;
  }

  /** Up to `atOnce` at a time, whatever one of them waits for; never two of one request. */
  async function loop(): Promise<void> {
    while (!closing.signal.aborted) {
      let ids: string[] = [];
      const room = atOnce - inFlight.size;
      try {
        if (room > 0) ids = await store.takeDue(room, options.hiddenMs);
      } catch {
        // Redis is away: its connection tells, and the outbox is still there when it is back
      }
      for (const id of ids) begin(id);
      if (ids.length === 0 && !closing.signal.aborted) await pause();
    }
    await Promise.all(inFlight.values());
  }

  function begin(id: string): void {
    const before = inFlight.get(id) ?? Promise.resolve();
    const mine = before
      .then(() => deliver(id))
      .catch((error: unknown) => {
        log.error("delivery.failed", { request: id, error });
      })
      .finally(() => {
        // There is room again, and what was just done may be due again
        if (inFlight.get(id) === mine) inFlight.delete(id);
        nudged.resolve();
      });
    inFlight.set(id, mine);
  }

  async function pause(): Promise<void> {
    const timer = setTimeout(() => nudged.resolve(), options.everyMs);
    await nudged.promise;
    clearTimeout(timer);
    nudged = Promise.withResolvers<void>();
  }

  const running = loop();
  return {
    nudge: () => nudged.resolve(),
    async close(deadlineMs) {
      closing.abort();
      nudged.resolve();
      const giveUp = Promise.withResolvers<void>();
      const timer = setTimeout(() => giveUp.resolve(), deadlineMs);
      await Promise.race([running, giveUp.promise]);
      clearTimeout(timer);
    },
  };
}
