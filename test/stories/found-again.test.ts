import { expect, it } from "vitest";
import { startWorld } from "../support/start-world.ts";
import { wordsOf } from "./words.ts";
import { until } from "../support/until.ts";

it("a result that joined its card in one message, and is found again after its answer was lost, keeps its lines", async () => {
  await using world = await startWorld({ pace: { sweepMs: 500 } });
  const { weather } = world.slack;
  const method = "chat.postMessage";
  // The card waits until the result is there, and both are one message
  const letPost = weather.add({ method, kind: "error", error: "missing_scope" });
  await world.olivia.types("ops", "/vm restart web-2");
  const states = async () =>
    (await world.store.getMany(await world.store.recentIds({}, 5))).map(({ state }) => state);
  await until(states).toEqual(["done"]);
  weather.add({ method, kind: "lost-after", times: 1 });
  letPost();
  const { messages } = await world.olivia
    .until(() => world.olivia.seesChannel("ops").messages.length > 0)
    .then(() => world.olivia.seesChannel("ops"));
  const whole = wordsOf(messages[0] ?? never());
  expect(whole).toMatch(/Attested again|Attestation:/);
  expect(whole).toMatch(/Sent [^]*REBOOTING seen/);
  // Found, marked, and edited to what it shows now
  await world.ended("vm restart");
  await world.slack.until(() => world.slack.calls("chat.update").length > 0);
  const all = world.olivia.seesChannel("ops").messages;
  expect(all).toHaveLength(1);
  const after = wordsOf(all[0] ?? never());
  expect(after).toMatch(/Attested again|Attestation:/);
  expect(after).toMatch(/Sent [^]*REBOOTING seen/);
});

const never = (): never => {
  throw new Error("no message");
};
