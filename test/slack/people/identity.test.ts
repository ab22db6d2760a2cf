import { expect, it } from "vitest";
import { CannotTell } from "../../../src/slack/people/cannot-tell.ts";
import { learnIdentity } from "../../../src/slack/people/identity.ts";
import type { WebAnswer } from "../../../src/slack/web-answer.ts";

const us = { bot_id: "B1", user_id: "U1", team_id: "T1" };

function learning(answers: readonly WebAnswer[]) {
  let calls = 0;
  const web = {
    call: async (method: string): Promise<WebAnswer> =>
      (method === "auth.test" ? answers[Math.min(calls++, answers.length - 1)] : undefined) ?? {
        ok: true,
        data: {},
      },
  };
  return { identity: learnIdentity(web, {}), calls: () => calls };
}

it("the bot's identity is unknown until Slack can be reached, and asked for until then", async () => {
  const { identity, calls } = learning([
    { ok: false, kind: "unreachable", reason: "refused" },
    { ok: false, kind: "limited", retryAfterMs: 1000 },
    { ok: true, data: us },
  ]);
  expect(() => identity.known()).toThrow(CannotTell);
  expect(await identity.learned).toMatchObject({ botId: "B1", teamId: "T1" });
  expect(identity.known()).toMatchObject({ botUserId: "U1" });
  expect(calls()).toBe(3);
});

it("a refused token needs a person, and a closed process asks no more", async () => {
  const refused = learning([{ ok: false, kind: "refused", error: "invalid_auth", detail: [] }]);
  await expect(refused.identity.learned).rejects.toThrow("Slack rejected the bot token");
  const closed = learning([{ ok: false, kind: "unreachable", reason: "refused" }]);
  await closed.identity.close();
  await expect(closed.identity.learned).rejects.toThrow();
  expect(closed.calls()).toBe(1);
});
