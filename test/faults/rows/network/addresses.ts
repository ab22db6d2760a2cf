import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect, type Server } from "node:net";
import path from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { root } from "../../stage/child.ts";
import { hears } from "../../people/hearing.ts";
import { askEach, type Expectation, fresh, judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";
import type { Bot } from "../../stage/start-bot.ts";

/** Addresses of the service that no process may begin with. */
const refusedAddresses = [
  "http://169.254.169.254",
  "https://169.254.169.254/latest/meta-data",
  "https://[fe80::1]",
  "https://[::ffff:169.254.169.254]",
  "https://0.0.0.0",
  "http://10.0.0.5",
  "http://compute.example.com",
  "file:///etc/passwd",
  "gopher://127.0.0.1:6379",
  "https://user:password@compute.example.com",
  "https://compute.example.com?to=http://127.0.0.1",
];

/** What a project's repository may not be. */
const refusedRepositories = [
  "http://169.254.169.254/latest",
  "file:///etc/passwd",
  "https://user:password@git.example/x",
  "ssh://127.0.0.1/x",
];

async function listening(server: Server): Promise<number> {
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** TLS of its own in front of the service, with this certificate. */
async function tlsFront(name: string, to: number) {
  const pem = await readFile(
    path.join(root, "test/fleet/compute/certificates", `${name}.pem`),
    "utf8",
  );
  let opened = 0;
  const server = createTlsServer({ cert: pem, key: pem }, (socket) => {
    opened += 1;
    const upstream = connect(to, "127.0.0.1");
    socket.pipe(upstream).pipe(socket);
    for (const end of [socket, upstream]) end.on("error", () => end.destroy());
  });
  server.on("tlsClientError", () => undefined);
  const port = await listening(server);
  return { pem, opened: () => opened, port, close: () => server.close() };
}

/** A worker that trusts these certificates beside the system's, at this address. */
async function trusting(stage: Stage, file: string, port: number): Promise<Bot> {
  return stage.addBot("worker", {
    slot: `tls-${port}`,
    env: { COMPUTE_API_URL: `https://localhost:${port}` },
    nodeEnv: { NODE_EXTRA_CA_CERTS: file },
  });
}

/** Types a command and signs it again with another response URL. */
async function answerElsewhere(stage: Stage, elsewhere: string): Promise<void> {
  const { deliveryId } = await stage.slack.act("vera", "types", "ops", "/vm list");
  const deliveries = await stage.slack.question<{ id: string; payload: Record<string, string> }[]>(
    "deliveries",
    "command",
  );
  const typed = deliveries.find(({ id }) => id === deliveryId)?.payload ?? {};
  const body = new URLSearchParams({
    ...typed,
    text: "list --status STOPPED",
    trigger_id: "9.9",
    response_url: elsewhere,
  }).toString();
  const seconds = Math.floor(Date.now() / 1000);
  await stage.slack.question("sendRaw", body, {
    "content-type": "application/x-www-form-urlencoded",
    "x-slack-request-timestamp": String(seconds),
    "x-slack-signature": await stage.slack.question<string>("sign", seconds, body),
  });
  await hears(stage, "vera", /STOPPED/);
}

export const addressRows: Row[] = [
  {
    id: "N6",
    fault: "the certificate of another host, or an expired one",
    must: "changes freeze; nothing is sent",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 0, policy: "audit: { channel: C03AUDIT }" }, async (stage) => {
        const take = fresh(stage);
        const apis = await Promise.all(
          ["localhost", "expired", "other-host"].map((name) =>
            tlsFront(name, stage.lines.compute.port),
          ),
        );
        const [good, expired, other] = apis;
        if (!good || !expired || !other) throw new Error("no TLS fronts");
        try {
          const file = path.join(stage.folder, "trusted.pem");
          await writeFile(
            file,
            apis.map(({ pem }) => pem.replace(/-----BEGIN [^-]*KEY[^]*/, "")).join("\n"),
          );
          const right = await trusting(stage, file, good.port);
          const [first] = await askEach(stage, take, ["vm restart"]);
          await stage.quiet();
          await right.kill();
          const sends = (await stage.service.writes()).length;
          const freezes: string[] = [];
          for (const api of [expired, other]) {
            const worker = await trusting(stage, file, api.port);
            await askEach(stage, take);
            stage.faults += 1;
            await stage.quiet();
            const freeze = await stage.redis.get(`{${stage.namespace}}:freeze`);
            freezes.push(freeze ?? "");
            await hears(stage, "ada", /froze all changes: the compute service's certificate/);
            await stage.slack.act("ada", "types", "ops", "/gatehouse thaw");
            await hears(stage, "ada", /Changes are allowed again/);
            await worker.kill();
          }
          const journal = await stage.journal();
          const sent = (await stage.service.writes()).length;
          return judged(await stage.check(), [
            [
              "with a right one all goes well",
              journal.some(({ target, state }) => target === first?.target && state === "done"),
            ],
            [`nothing was sent (${sent - sends})`, sent === sends && sends === 1],
            [
              `changes froze each time (${freezes.join(" ")})`,
              freezes.every((freeze) => freeze.includes("certificate")),
            ],
            [
              "all others ended without a send",
              journal.filter(({ attempt }) => attempt > 0).length === 1,
            ],
          ]);
        } finally {
          for (const api of apis) api.close();
        }
      }),
  },
  {
    id: "X12",
    fault:
      "addresses that lead inside: the service's, and in redirects, parameters, and response URLs",
    must: "no process starts with one; nothing goes there",
    unknown: "no trace",
    async run({ seed }) {
      const heard: string[] = [];
      const thief = createServer((request, response) => {
        heard.push(`${request.method} ${request.url} ${request.headers.authorization ?? ""}`);
        response.end("{}");
      });
      const inside = `http://127.0.0.1:${await listening(thief)}/stolen`;
      try {
        return await onStage({ seed, receive: "http", direct: true }, async (stage) => {
          const began: Expectation[] = [];
          const starts = refusedAddresses.map(async (COMPUTE_API_URL, n) => {
            const bot = await stage.addBot("worker", {
              slot: `inside-${n}`,
              env: { COMPUTE_API_URL },
            });
            const why = bot.refused ?? bot.lastWords();
            began.push([`does not begin with ${COMPUTE_API_URL}`, bot.port === 0]);
            began.push([`and says why: ${why}`, /COMPUTE_API_URL|base URL/.test(why)]);
            await bot.kill();
          });
          await Promise.all(starts);
          stage.faults += refusedAddresses.length;

          // No redirect is followed, neither of what reads nor of what changes
          const take = fresh(stage);
          for (const status of [301, 302, 307, 308]) {
            const storm = { redirect: inside, redirectStatus: status };
            const rule = await stage.service.weather({ match: "*", ...storm, times: 6 });
            await askEach(stage, take, ["vm restart"]);
            stage.faults += 1;
            await stage.quiet();
            await stage.service.clear(rule);
          }
          for (const repository of refusedRepositories) {
            const flags = "--name inside --type GIT_DEPLOY --region eu-west-1";
            await stage.slack.act(
              "olivia",
              "types",
              "ops",
              `/project create ${flags} --git-url ${repository}`,
            );
            stage.faults += 1;
          }
          await hears(stage, "olivia", /git-url/);
          await answerElsewhere(stage, inside);
          stage.faults += 1;
          const created = (await stage.service.calls()).filter(
            ({ method, path: at }) => method === "POST" && at === "/v1/projects",
          );
          return judged(
            await stage.check(),
            [
              ...began,
              [`nobody went there (${heard.join(", ")})`, heard.length === 0],
              [`no project was made of such a repository`, created.length === 0],
            ],
            { notes: [`${refusedAddresses.length} addresses refused`] },
          );
        });
      } finally {
        thief.close();
        thief.closeAllConnections();
      }
    },
  },
];
