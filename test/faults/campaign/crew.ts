import type { Stage } from "../stage/stage.ts";
import type { Bot } from "../stage/start-bot.ts";
import { longestFreezeMs } from "../stage/timing.ts";

/** A place that is always manned: when its process dies, one that has loaded everything already takes over. */
interface Post {
  role: "worker" | "gateway";
  slot: string;
  bot: Bot;
  next: Promise<Bot>;
  isFrozen: boolean;
}

/** Workers and gateways with a supervisor, and somebody who kills and freezes them at random. */
export interface Crew {
  /** Kills so far, and freezes. */
  readonly counts: { kills: number; freezes: number; crashes: number };
  /** Why processes ended by themselves. */
  readonly crashes: string[];
  begin(): void;
  /** No more faults; what is frozen goes on. */
  end(): Promise<void>;
}

/**
 * The time between two faults, as a part of the time in which a process last loaded. On a slow
 * machine faults at a fixed pace would leave nothing but processes that start.
 */
const betweenFaults = [0.04, 0.12] as const;

export async function startCrew(
  stage: Stage,
  options: {
    workers: number;
    gateways: number;
    random: () => number;
    freezes: number;
  },
): Promise<Crew> {
  const { random } = options;
  const counts = { kills: 0, freezes: 0, crashes: 0 };
  const crashes: string[] = [];
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  const thawing = new Set<() => void>();
  const loading = new Set<Promise<unknown>>();

  let loadMs = 1000;
  async function load(role: Post["role"], slot: string): Promise<Bot> {
    const from = performance.now();
    const bot = await stage.addBot(role, { slot, begin: false });
    loadMs = performance.now() - from;
    return bot;
  }
  async function man(role: Post["role"], slot: string): Promise<Post> {
    const bot = await load(role, slot);
    await bot.begin();
    const post: Post = { role, slot, bot, next: load(role, slot), isFrozen: false };
    post.next.catch(() => undefined);
    watchOver(post);
    return post;
  }

  function watchOver(post: Post): void {
    const { bot } = post;
    void bot.exited.then((how) => {
      if (isOver) return;
      if (how !== "SIGKILL") {
        counts.crashes += 1;
        crashes.push(`${post.slot} ended (${how}): ${bot.refused ?? bot.lastWords()}`);
      }
      const replaced = replace(post).catch((error: unknown) => crashes.push(String(error)));
      loading.add(replaced);
      void replaced.finally(() => loading.delete(replaced));
    });
  }

  async function replace(post: Post): Promise<void> {
    post.bot = await post.next;
    post.isFrozen = false;
    post.next = load(post.role, post.slot);
    post.next.catch(() => undefined);
    watchOver(post);
    await post.bot.begin();
  }

  const posts = await Promise.all([
    ...Array.from({ length: options.workers }, (_, n) => man("worker", `worker-${n}`)),
    ...Array.from({ length: options.gateways }, (_, n) => man("gateway", `gateway-${n}`)),
  ]);

  function strike(): void {
    const gateways = posts.filter(({ role }) => role === "gateway");
    const workers = posts.filter(({ role }) => role === "worker");
    const among = gateways.length > 0 && random() < 0.04 ? gateways : workers;
    const post = among[Math.floor(random() * among.length)];
    if (!post || post.bot.isGone() || post.bot.port === 0 || post.isFrozen) return plan();
    if (post.role === "worker" && random() < options.freezes) {
      counts.freezes += 1;
      stage.faults += 1;
      freeze(post, 200 + random() * (longestFreezeMs - 200));
    } else {
      counts.kills += 1;
      stage.faults += 1;
      void post.bot.kill();
    }
    plan();
  }

  function freeze(post: Post, forMs: number): void {
    const { bot } = post;
    post.isFrozen = true;
    bot.freeze();
    const thaw = () => {
      clearTimeout(due);
      thawing.delete(thaw);
      if (post.bot === bot) post.isFrozen = false;
      bot.thaw();
    };
    const due = setTimeout(thaw, forMs);
    thawing.add(thaw);
  }

  function plan(): void {
    if (isOver) return;
    const [least, most] = betweenFaults;
    timer = setTimeout(strike, loadMs * (least + random() * (most - least)));
  }

  return {
    counts,
    crashes,
    begin: plan,
    async end() {
      clearTimeout(timer);
      for (const thaw of thawing) thaw();
      await Promise.all(loading);
      isOver = true;
    },
  };
}
