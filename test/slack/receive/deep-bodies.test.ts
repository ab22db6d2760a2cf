import { describe, expect, it } from "vitest";
import { startGateway, type TestGateway } from "./start-slack.ts";
import { until } from "../../support/until.ts";

/** Resolves with the status for a signed body. */
async function send(
  { slack }: TestGateway,
  body: string,
  type = "application/x-www-form-urlencoded",
) {
  const seconds = Math.floor(Date.now() / 1000);
  const { status } = await slack.sendRaw(body, {
    "content-type": type,
    "x-slack-request-timestamp": String(seconds),
    "x-slack-signature": slack.sign(seconds, body),
  });
  return { status };
}

const nested = (open: string, close: string, depth: number) =>
  open.repeat(depth) + close.repeat(depth);

const deepObject = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

describe("a body that is signed and of our workspace, and not what Slack sends", () => {
  it("is acked and asks for nothing, however deep or wide it is, and whatever its names are", async () => {
    await using gateway = await startGateway();
    const { slack } = gateway;
    const team = `"team":{"id":"${slack.workspace.team.id}"},"api_app_id":"${slack.app.appId}","user":{"id":"U0VERA","team_id":"${slack.workspace.team.id}"}`;
    const payloads = [
      `{${team},"type":"block_actions","actions":${nested("[", "]", 60_000)}}`,
      `{${team},"type":"block_actions","actions":[{"action_id":"x","value":${deepObject(20_000)}}]}`,
      `{${team},"type":"view_submission","view":{"id":"V1","state":{"values":${deepObject(20_000)}}}}`,
      `{${team},"type":"block_actions","actions":[${'{"action_id":"run:vm.stop"},'.repeat(10_000)}{}]}`,
      `{${team},"type":"block_actions","__proto__":{"polluted":true},"actions":[{"__proto__":{"polluted":true},"action_id":"__proto__","value":"{\\"__proto__\\":{\\"polluted\\":true}}"}]}`,
      `{${team},"type":"view_submission","view":{"id":"V2","private_metadata":"{\\"__proto__\\":{\\"polluted\\":true}}","state":{"values":{"__proto__":{"polluted":{"value":"x"}},"constructor":{"prototype":{"value":"x"}}}}}}`,
      `{${team},"type":"view_submission","view":{"id":"V3","state":{"values":{${Array.from({ length: 5_000 }, (_, n) => `"b${n}":{"a":{"value":"x"}}`).join(",")}}}}}`,
    ];
    for (const payload of payloads) {
      expect(() => JSON.parse(payload)).not.toThrow();
      const { status } = await send(gateway, `payload=${encodeURIComponent(payload)}`);
      expect(status, payload.slice(-60)).toBe(200);
    }
    for (const text of [
      nested("[", "]", 200_000),
      '{"a":'.repeat(100_000),
      "{",
      "null",
      "7",
      '"x"',
    ]) {
      const { status } = await send(gateway, text, "application/json");
      expect(status).toBeLessThan(500);
    }
    for (const text of ["null", "7", "[1]", "", "{"]) {
      const { status } = await send(gateway, `payload=${text}`);
      expect(status, text).toBe(400);
    }
    expect("polluted" in {}).toBe(false);
    expect(gateway.lines.filter((line) => line.includes('"bug"'))).toEqual([]);
    // It goes on: what Slack sends is still taken
    await slack.person("olivia").types("ops", "/vm restart web-1");
    const kinds = () => gateway.handled.map(({ kind }) => kind);
    await until(kinds).toContain("command");
  });
});
