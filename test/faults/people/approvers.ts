import { setTimeout as sleep } from "node:timers/promises";
import type { Stage } from "../stage/stage.ts";

/** Of the requests that wait for approval, so many are denied, and so many get no answer. */
const usual = { denied: 0.1, unanswered: 0.06 };

type Plan = { button: "Approve" | "Deny"; by: Set<string> };

/**
 * Two people who answer whatever waits for approval, and press again when Slack says that it failed, or Gatehouse that nothing
 * was done.
 */
export function startApprovers(stage: Stage, random: () => number, { denied, unanswered } = usual) {
  const plans = new Map<string, Plan>();
  const pressed: { id: string; who: string }[] = [];
  const refusals = new Map<string, number>();
  const counts = { approvals: 0, denials: 0, unanswered: 0 };
  let isOver = false;

  function planFor(required: number): Plan {
    const chance = random();
    if (chance < unanswered) {
      counts.unanswered += 1;
      return { button: "Approve", by: new Set() };
    }
    if (chance < unanswered + denied) {
      counts.denials += 1;
      return { button: "Deny", by: new Set(["amir"]) };
    }
    counts.approvals += 1;
    return { button: "Approve", by: new Set(required > 1 ? ["amir", "ada"] : ["amir"]) };
  }

  async function answer(): Promise<void> {
    const ids = await stage.redis.zrange(`{${stage.namespace}}:requests:open`, 0, "-1");
    for (const id of ids) {
      const [state, record, card] = await stage.redis.hmget(
        `{${stage.namespace}}:request:${id}`,
        "state",
        "record",
        "card",
      );
      if (state !== "draft" || !card || !record) continue;
      const { approval } = JSON.parse(record) as { approval?: { required: number } };
      const plan = plans.get(id) ?? planFor(approval?.required ?? 1);
      plans.set(id, plan);
      const [channel = "", ts = ""] = card.split(" ");
      for (const who of plan.by) {
        const outcome = await stage.slack
          .act(who, "presses", plan.button, { in: ts, channel })
          .catch(() => undefined);
        // The button may be gone: the other one's press was enough
        if (outcome?.acked === false) continue;
        plan.by.delete(who);
        pressed.push({ id, who });
      }
    }
    for (const who of ["amir", "ada"]) if (await wasRefused(who)) pressAgain(who);
  }

  async function wasRefused(who: string): Promise<boolean> {
    const { channels } = await stage.slack.seen(who);
    const count = channels
      .flatMap(({ messages }) => messages)
      .filter(
        ({ ephemeral, text }) =>
          ephemeral && /nothing was done|isn't known whether|doesn't know whether/.test(text),
      ).length;
    const before = refusals.get(who) ?? 0;
    refusals.set(who, count);
    return count > before;
  }

  /** Which press it was is not said: a second one changes nothing. */
  function pressAgain(who: string): void {
    for (const press of pressed) if (press.who === who) plans.get(press.id)?.by.add(who);
  }

  const running = (async () => {
    while (!isOver) {
      await answer().catch(() => undefined);
      await sleep(200);
    }
  })();
  return {
    counts,
    async end() {
      isOver = true;
      await running;
    },
  };
}
