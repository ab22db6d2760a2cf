import { expect, it } from "vitest";
import { card } from "../../../src/messages/card.ts";
import { md } from "../../../src/messages/markdown.ts";
import { startGateway } from "./start-slack.ts";
import { until } from "../../support/until.ts";

it("what was acknowledged is stored before, without its trigger and its response URL", async () => {
  await using gateway = await startGateway({
    handlers: { handleInteraction: () => new Promise(() => undefined) },
  });
  await gateway.slack.person("olivia").types("ops", "/vm list");
  const [interaction] = await gateway.handles(1);
  const [job] = await gateway.queue.getDelayed();
  expect(job?.data.interaction).toMatchObject({ id: interaction?.id, text: "vm list" });
  const stored = JSON.stringify(job);
  for (const secret of [interaction?.triggerId, interaction?.responseUrl]) {
    expect(secret).toBeTruthy();
    expect(stored).not.toContain(secret);
  }
});

it("what a gateway didn't finish is finished by the next, which can still answer the person", async () => {
  await using gateway = await startGateway({
    handlers: { handleInteraction: () => new Promise(() => undefined) },
  });
  const olivia = gateway.slack.person("olivia");
  await olivia.types("secret", "/vm list");
  await gateway.handles(1);
  await gateway.app.close(0);
  await using next = await startGateway({
    beside: gateway,
    handlers: {
      handleInteraction: (_ask, reply) => reply.privately(card({ title: md`Here` })),
    },
  });
  const [taken] = await next.handles(1);
  expect(taken).toMatchObject({ kind: "command", text: "vm list", id: gateway.handled[0]?.id });
  expect(taken?.triggerId).toBeUndefined();
  // The response URL died with its gateway, and the bot isn't in that channel
  const isTold = () => olivia.seesChannel("gatehouse").messages.some((one) => one.text === "Here");
  await olivia.until(isTold);
});

it("an event is acknowledged only once it is stored", async () => {
  const { promise: goOn, resolve } = Promise.withResolvers<void>();
  await using gateway = await startGateway({ onStored: () => goOn });
  const { slack } = gateway;
  const typing = slack.person("olivia").types("ops", "@gatehouse vm list");
  await until(() => gateway.queue.getDelayedCount()).toBe(1);
  expect(gateway.acks).toEqual([]);
  resolve();
  await typing;
  await gateway.handles(1);
  expect(gateway.acks).toMatchObject([{ kind: "event" }]);
});
