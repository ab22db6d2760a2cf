import { createServer } from "node:http";
import { once } from "node:events";
import { afterEach, expect, it } from "vitest";
import { request } from "undici";
import { trustAuthorities } from "../../src/config/authorities.ts";
import { silentLog } from "../../src/log/log.ts";
import { createWeb } from "../../src/slack/web.ts";
import { clientOf } from "../fleet/compute/answering.ts";
import { mintAuthority } from "../support/mint-authority.ts";
import { startTlsFront } from "../support/tls-front.ts";

afterEach(() => trustAuthorities(undefined));

it("an authority counts from the moment it is added, for fetch, undici, and a client of the compute service that was there before", async () => {
  const [ours, former] = [mintAuthority("Acme CA"), mintAuthority("Acme CA of last year")];
  const server = createServer((_, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end('{"projects":[]}'),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await using front = await startTlsFront(
    ours.mint("localhost", { hosts: ["localhost"] }),
    `http://127.0.0.1:${port}`,
  );
  await using compute = clientOf(front.url);
  const isTrusted = async () => {
    const asked = [
      fetch(front.url, { headers: { connection: "close" } }).then((answer) => answer.text()),
      request(front.url, { reset: true }).then(({ body }) => body.text()),
      compute.projects.listAll(1),
    ];
    const all = (await Promise.allSettled(asked)).map(({ status }) => status === "fulfilled");
    return all;
  };
  try {
    expect(await isTrusted()).toEqual([false, false, false]);
    trustAuthorities(former.certificate);
    expect(await isTrusted()).toEqual([false, false, false]);
    // Not a byte of a call left: it did not happen
    const slack = createWeb({ token: "xoxb-1", apiUrl: `${front.url}/api/`, log: silentLog() });
    expect(await slack.call("chat.postMessage")).toMatchObject({ kind: "unreachable" });
    trustAuthorities(former.certificate + ours.certificate);
    expect(await isTrusted()).toEqual([true, true, true]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
