import { setTimeout as sleep } from "node:timers/promises";
import type { Weather } from "../../../src/sandbox/compute/weather.ts";
import { askEach, type Expectation, fresh, judged, kindsOf, onStage, type Row } from "../row.ts";
import type { Journalled } from "../count-effects.ts";

/** Three requests of each kind under one weather on their calls; how each kind must end. */
function underWeather(
  id: string,
  what: string,
  weather: Weather,
  ends: (request: Journalled) => boolean,
  more: { each?: number; mayBeUnknown?: boolean } = {},
): Row {
  return {
    id,
    what,
    run: ({ seed }) =>
      onStage({ seed, workers: 2, vms: 40 }, async (stage) => {
        const take = fresh(stage);
        await stage.service.weather({ match: "writes", ...weather });
        for (let n = 0; n < (more.each ?? 3); n++) await askEach(stage, take);
        const journal = await stage.quiet();
        stage.faults += (await stage.service.writes()).filter(
          (call) => (call as { weather?: unknown[] }).weather?.length,
        ).length;
        const wrong = journal.filter((request) => !ends(request));
        return judged(
          await stage.check(),
          wrong.map((one): Expectation => [
            `${one.command} does not end as ${one.state} (${one.progress.why ?? ""}) [${one.history.join(" ")}]`,
            false,
          ]),
          { mayBeUnknown: more.mayBeUnknown ?? true },
        );
      }),
  };
}

const isRestart = ({ command }: Journalled) => command === "vm restart";
/** Applied: what leaves a trace is found; a restart is found when its REBOOTING was seen, else it is unknown. */
const found = (request: Journalled) =>
  request.state === "done" || (isRestart(request) && request.state === "unknown");
export const serviceStateRows: Row[] = [
  underWeather(
    "A9",
    "accepted, then the state never changes",
    { stuck: true },
    ({ state }) => state === "unknown",
    { each: 1 },
  ),
  underWeather(
    "A10",
    "the state goes to ERROR",
    { goesTo: "ERROR" },
    ({ state, command }) => state === "failed" || (command === "vm stop" && state === "failed"),
    { each: 1 },
  ),
  {
    id: "A11",
    what: "the state flaps between RUNNING and STOPPED",
    run: ({ seed }) =>
      onStage(
        { seed, workers: 1, pace: { quiesce: 2500, settleDeadline: 6000 } },
        async (stage) => {
          const take = fresh(stage);
          const vm = await take("vm stop");
          await stage.service.weather({ match: "writes", lost: "after", times: 1 });
          await stage.ask("vm stop", vm);
          await stage.until(({ state }) => state === "unclear" || state === "sending");
          // From read to read of this VM: the lists that others read are not among them
          const shownStatus = ["RUNNING", "STOPPED"];
          await stage.service.weather({ match: "GET /v1/vms/:id", shownStatus });
          stage.faults += 2;
          const [request] = await stage.quiet();
          return judged(
            await stage.check(),
            [[`it is unknown, not ${request?.state}`, request?.state === "unknown"]],
            { mayBeUnknown: true },
          );
        },
      ),
  },
  {
    id: "A15",
    what: "401 in the middle of 40 requests",
    run: ({ seed }) =>
      onStage({ seed, workers: 2, vms: 60 }, async (stage) => {
        const take = fresh(stage);
        const kinds = kindsOf(stage);
        await stage.service.weather({ match: "writes", status: 401, skip: 8 });
        for (let n = 0; n < 40; n++)
          await stage.ask(kinds[n % kinds.length] ?? "", await take(kinds[n % kinds.length] ?? ""));
        const journal = await stage.quiet();
        const refused = (await stage.service.writes()).filter(
          ({ answer }) => answer === 401,
        ).length;
        stage.faults += refused;
        const frozen = await stage.redis.get(`{${stage.namespace}}:freeze`);
        const after = await stage.ask("vm restart", await take("vm restart"));
        await stage.quiet();
        const [last] = (await stage.journal()).filter(({ target }) => target === after.target);
        return judged(
          await stage.check(),
          [
            ["changes are frozen", frozen !== null],
            [`only calls in flight were refused, not ${refused}`, refused <= 12],
            ["nobody tried again", journal.every(({ attempt }) => attempt <= 1)],
            [
              `what was asked afterwards was not sent (${last?.state})`,
              last?.state === "cancelled",
            ],
          ],
          { mayBeUnknown: true },
        );
      }),
  },
  {
    id: "A16",
    what: "429 without Retry-After for a while",
    run: ({ seed }) =>
      onStage({ seed, workers: 2 }, async (stage) => {
        const take = fresh(stage);
        const id = await stage.service.weather({ match: "writes", status: 429 });
        await askEach(stage, take);
        await askEach(stage, take);
        await sleep(4000);
        const during = (await stage.service.writes()).length;
        stage.faults += during;
        await stage.service.clear(id);
        const journal = await stage.quiet(40_000);
        return judged(await stage.check(), [
          [
            `all are done (${journal.map(({ state }) => state).join(" ")})`,
            journal.every(({ state }) => state === "done"),
          ],
          [
            `no storm: ${during} calls in 4 s for ${journal.length} requests`,
            during <= journal.length * 2,
          ],
        ]);
      }),
  },
  {
    id: "A17",
    what: "an unknown state, unknown fields, a missing one",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        await stage.service.weather({
          match: "GET /v1/vms/:id",
          shownStatus: "MIGRATING",
          extra: { hypervisor: { a: 1 } },
          without: ["ip_address"],
        });
        stage.faults += 1;
        await askEach(stage, take);
        await sleep(2500);
        const writes = await stage.service.writes();
        await stage.service.clear();
        await stage.quiet();
        return judged(await stage.check(), [
          [
            `nothing was sent to a VM in a state nobody knows (${writes.length})`,
            writes.length === 0,
          ],
        ]);
      }),
  },
  {
    id: "A18",
    what: "307 to another host",
    run: async ({ seed }) => {
      const { createServer } = await import("node:http");
      const heard: string[] = [];
      const thief = createServer((request, response) => {
        heard.push(`${request.method} ${request.headers.authorization ?? ""}`);
        response.end("{}");
      });
      await new Promise<void>((listening) => void thief.listen(0, "127.0.0.1", listening));
      const address = thief.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      try {
        return await onStage({ seed, workers: 1 }, async (stage) => {
          const take = fresh(stage);
          await stage.service.weather({
            match: "writes",
            redirect: `http://127.0.0.1:${port}/stolen`,
          });
          stage.faults += 3;
          await askEach(stage, take);
          await stage.quiet();
          return judged(
            await stage.check(),
            [[`nobody followed (${heard.join(", ")})`, heard.length === 0]],
            { mayBeUnknown: true },
          );
        });
      } finally {
        thief.close();
        thief.closeAllConnections();
      }
    },
  },
  {
    id: "A19",
    what: "the VM is changed by somebody else while the request waits",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const vm = await take("vm restart");
        const [worker] = stage.workers();
        await worker?.arm({ point: "gate", do: "wait" });
        await stage.ask("vm restart", vm);
        await worker?.hit("gate");
        await stage.service.edit("changeBehindTheBack", { vm, specs: { cpu: 32 } });
        stage.faults += 1;
        worker?.go();
        const [request] = await stage.quiet();
        return judged(await stage.check(), [
          [
            `cancelled with what changed (${request?.state}: ${request?.progress.why})`,
            request?.state === "cancelled" && /cpu/.test(request.progress.why ?? ""),
          ],
        ]);
      }),
  },
  underWeather("A21", "an answer of 50 MB", { hugeBytes: 50 * 1024 * 1024, times: 2 }, found, {
    each: 1,
  }),
  underWeather("A21b", "an answer byte by byte", { dripMs: 100, times: 3 }, found, { each: 1 }),
];
