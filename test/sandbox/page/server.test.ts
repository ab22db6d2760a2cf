import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { startPage } from "../../../sandbox/page/page.ts";
import { startSlack } from "../slack/start-slack.ts";

async function start() {
  const slack = await startSlack({ rateLimits: "off" });
  const page = await startPage({ slack });
  return {
    slack,
    url: page.url,
    origin: page.url.slice(0, -1),
    [Symbol.asyncDispose]: async () => {
      await page.close();
      await slack.close();
    },
  };
}

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  text: string;
}

/** With any header at all, `Host` and `Origin` included, which fetch doesn't let one choose. */
function call(
  url: string,
  {
    method = "GET",
    headers = {},
    body = "",
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => (text += piece));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const json = (origin: string) => ({ origin, "content-type": "application/json" });

describe("the page's server", () => {
  it("serves the page with a policy that runs nothing from elsewhere, and scripts without types", async () => {
    await using here = await start();
    const page = await call(here.url);
    expect(page).toMatchObject({ status: 200, headers: { "x-content-type-options": "nosniff" } });
    expect(page.headers["content-security-policy"]).toContain("default-src 'self'");
    expect(page.headers["access-control-allow-origin"]).toBeUndefined();
    const script = await call(`${here.url}dom/dom.ts`);
    expect(script.headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(script.text).not.toContain("export type");
    const shared = await call(`${here.url}slack/fields.ts`);
    expect(shared.text).toMatch(/export function fieldsOf\(value *\)/);
    expect((await call(`${here.url}slack/sandbox-slack.ts`)).status).toBe(404);
    expect((await call(`${here.url}dom/..%2F..%2Froutes.ts`)).status).toBe(404);
    expect((await call(`${here.url}..%2Froutes.ts`)).status).toBe(404);
    expect((await call(`${here.url}routes.ts`)).status).toBe(404);
  });

  it("is one of the people for whoever asks, the first member by itself", async () => {
    await using here = await start();
    const me = async (query: string) => JSON.parse((await call(`${here.url}seen${query}`)).text);
    expect(await me("")).toMatchObject({ me: { id: "U0OLIVIA" } });
    expect(await me("?as=amir")).toMatchObject({ me: { id: "U0AMIR" } });
    expect(await me("?as=U0VERA")).toMatchObject({ me: { id: "U0VERA" } });
    expect((await call(`${here.url}seen?as=nobody`)).status).toBe(404);
    expect((await call(`${here.url}seen?as=deploybot`)).status).toBe(404);
  });

  it("does what a person can do, and says what they can't", async () => {
    await using here = await start();
    const act = (body: object) =>
      call(`${here.url}do`, {
        method: "POST",
        headers: json(here.origin),
        body: JSON.stringify(body),
      });
    const said = await act({ as: "olivia", action: "types", channel: "ops", text: "hello" });
    expect(said.status).toBe(200);
    expect(
      here.slack
        .person("amir")
        .seesChannel("ops")
        .messages.map(({ text }) => text),
    ).toEqual(["hello"]);
    const missing = await act({ as: "olivia", action: "presses", button: "Approve" });
    expect(missing.status).toBe(409);
    expect(JSON.parse(missing.text)).toMatchObject({
      problem: expect.stringContaining("sees no Approve"),
    });
    expect((await act({ as: "olivia", action: "until" })).status).toBe(400);
    expect((await act({ as: "olivia", action: "types", channel: "ops" })).status).toBe(400);
  });

  it("tells open pages of every change", async () => {
    await using here = await start();
    const events = await fetch(`${here.url}events?as=olivia`);
    const reader = (events.body ?? new ReadableStream<Uint8Array>()).getReader();
    const first = await reader.read();
    expect(Buffer.from(first.value ?? []).toString()).toContain("event: changed");
    await here.slack.person("amir").types("ops", "news");
    const next = await reader.read();
    expect(Buffer.from(next.value ?? []).toString()).toContain("event: changed");
    await reader.cancel();
  });

  it("refuses other pages, other names for this machine, and what is too long", async () => {
    await using here = await start();
    const post = (headers: Record<string, string>, body = "{}") =>
      call(`${here.url}do`, { method: "POST", headers, body });
    expect((await post(json("https://evil.example"))).status).toBe(403);
    expect((await post({ "content-type": "application/json" })).status).toBe(403);
    expect((await post({ ...json(here.origin), "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await post({ origin: here.origin, "content-type": "text/plain" })).status).toBe(415);
    expect((await post(json(here.origin), "{")).status).toBe(400);
    expect((await post(json(here.origin), JSON.stringify("x".repeat(300_000)))).status).toBe(413);
    expect((await call(`${here.url}seen`, { headers: { host: "evil.example" } })).status).toBe(403);
    expect(
      (await call(`${here.url}seen`, { headers: { "sec-fetch-site": "cross-site" } })).status,
    ).toBe(403);
    expect((await call(here.url, { headers: { "sec-fetch-site": "cross-site" } })).status).toBe(
      200,
    );
    expect(
      (await call(here.url, { method: "DELETE", headers: { origin: here.origin } })).status,
    ).toBe(405);
  });
});
