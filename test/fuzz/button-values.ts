import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { buttonOn, pressPayload } from "../stories/forge.ts";
import { forgedPress } from "./button-cases.ts";
import { createTally, type Fuzzed, type FuzzOptions, sampled, withHands } from "./fuzzed.ts";
import { type FuzzWorld, startFuzzWorld } from "./fuzz-world.ts";
import { lay } from "./lay.ts";
import { outcomeOf } from "./outcome.ts";
import { until } from "../support/until.ts";

/**
 * Presses that Slack would never send, signed as if it had: by people who may not, on values, messages, channels and
 * teams that were changed. All of them go over HTTP into a whole Gatehouse; none may change anything.
 */
export async function fuzzButtonValues({ cases, seed }: FuzzOptions): Promise<Fuzzed> {
  const tally = createTally();
  await using world = await startFuzzWorld(tally, { mayDeliveriesFail: true });
  const olivia = world.slack.person("olivia");
  const ops = () =>
    world.slack.seenBy("amir").channels.find(({ id }) => id === "C01OPS")?.messages ?? [];
  const cardOf = (pattern: RegExp) =>
    world.slack.until(() =>
      ops().find(
        (message) =>
          pattern.test(JSON.stringify(message)) && JSON.stringify(message).includes("vote:approve"),
      ),
    );
  await olivia.types("ops", "/vm restart web-2");
  await olivia.types("ops", "/vm stop db-1");
  const cards = [await cardOf(/[Rr]estart[^]*web-2/), await cardOf(/[Ss]top[^]*db-1/)] as const;
  await olivia.types("ops", "just words");
  const words = await world.slack.until(() => ops().find(({ text }) => text === "just words"));
  await world.idle();
  const before = await outcomeOf(world);

  const statuses = new Map<number, number>();
  await withHands(
    16,
    sampled(forgedPress([...cards, words]), { cases, seed }),
    async ({ on, forged }) => {
      tally.count();
      const payload = pressPayload(world, forged.who, on, forged.button);
      for (const [path, value] of forged.over) lay(payload, path.split("."), value);
      const began = performance.now();
      const { status, said } = await world.post(payload);
      tally.took(performance.now() - began);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status !== 200 && status !== 403)
        tally.crash(`${status} ${said.slice(0, 100)} for ${JSON.stringify(forged)}`);
    },
  );
  await world.idle();
  const after = await outcomeOf(world);
  if (after !== before) {
    tally.accept();
    tally.wrong(`something changed: from ${before} to ${after}`.slice(0, 3000));
  }
  await stillWorks(world, cards[0], tally.wrong);
  return tally.result(
    `all over HTTP with right signatures (${[...statuses].map(([status, times]) => `${times} times ${status}`).join(", ")})`,
  );
}

/** A genuine press counts after all this, once. */
async function stillWorks(
  world: FuzzWorld,
  card: SeenMessage,
  wrong: (what: string) => void,
): Promise<void> {
  const writes = world.compute.writes().length;
  await world.post(pressPayload(world, "amir", card, buttonOn(card, "Approve")));
  await until(() => world.compute.writes().length > writes).catch(() =>
    wrong("afterwards a genuine approval no longer led to the restart"),
  );
}
