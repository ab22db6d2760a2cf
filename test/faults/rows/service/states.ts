import { setTimeout as sleep } from "node:timers/promises";
import { askEach, fresh, judged, kinds, onStage, type Row } from "../row.ts";
import { found, struckCalls, underWeather } from "./under-weather.ts";

export const serviceStateRows: Row[] = [
  underWeather({
    id: "A9",
    fault: "accepted, but the status never changes",
    must: "each ends as unknown; a person is asked",
    // A start or stop leaves a trace, but the service never shows it
    unknown: "any",
    weather: { stuck: true },
    each: 1,
    ends: ({ state }) => state === "unknown",
  }),
  underWeather({
    id: "A10",
    fault: "the status becomes ERROR",
    must: "each ends as failed",
    unknown: "none",
    weather: { goesTo: "ERROR" },
    each: 1,
    ends: ({ state }) => state === "failed",
  }),
  {
    id: "A11",
    fault: "the status flaps between RUNNING and STOPPED",
    must: "it ends as unknown",
    // A stop leaves a trace, but the reads contradict each other
    unknown: "any",
    run: ({ seed }) =>
      onStage(
        { seed, workers: 1, timing: { quiesce: 2500, settleDeadline: 6000 } },
        async (stage) => {
          const take = fresh(stage);
          const vm = await take("vm stop");
          await stage.service.weather({ match: "writes", lost: "after", times: 1 });
          await stage.request("vm stop", vm);
          await stage.until(({ state }) => state === "unclear" || state === "sending");
          // From read to read of this VM: the lists that others read are not among them
          const shownStatus = ["RUNNING", "STOPPED"];
          await stage.service.weather({ match: "GET /v1/vms/:id", shownStatus });
          stage.faults += 2;
          const [request] = await stage.quiet();
          return judged(await stage.check(), [
            [`it is unknown, not ${request?.state}`, request?.state === "unknown"],
          ]);
        },
      ),
  },
  {
    id: "A15",
    fault: "401 in the middle of 40 requests",
    must: "changes freeze; nothing more is sent",
    unknown: "no trace",
    run: ({ seed }) =>
      onStage({ seed, workers: 2, vms: 60 }, async (stage) => {
        const take = fresh(stage);
        await stage.service.weather({ match: "writes", status: 401, skip: 8 });
        // The key is refused for reads, too: a 401 for changes alone would freeze nothing.
        await stage.service.weather({ match: "GET /v1/projects", status: 401 });
        for (let n = 0; n < 40; n++)
          await stage.request(
            kinds[n % kinds.length] ?? "",
            await take(kinds[n % kinds.length] ?? ""),
          );
        const journal = await stage.quiet();
        const refused = (await stage.service.writes()).filter(
          ({ answer }) => answer === 401,
        ).length;
        stage.faults += refused;
        const frozen = await stage.redis.get(`{${stage.namespace}}:freeze`);
        const after = await stage.request("vm restart", await take("vm restart"));
        await stage.quiet();
        const [last] = (await stage.journal()).filter(({ target }) => target === after.target);
        return judged(await stage.check(), [
          ["changes are frozen", frozen !== null],
          // On a busy machine some begin before the freeze is written
          [`only calls in flight were refused, not ${refused}`, refused <= 20],
          [
            "nobody tried again",
            journal.every((one) => one.attempt - (one.stage.setbacks?.returned ?? 0) <= 1),
          ],
          [`what was asked afterwards was refused at once (${last?.state})`, last === undefined],
        ]);
      }),
  },
  {
    id: "A16",
    fault: "429 without Retry-After for a while",
    must: "all are done, after at most two calls each meanwhile",
    unknown: "none",
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
    fault: "an unknown status, unknown fields, a missing field",
    must: "nothing is sent to a VM with an unknown status",
    unknown: "none",
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
    fault: "307 to another host",
    must: "no one follows it: the key goes nowhere else",
    unknown: "no trace",
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
          await askEach(stage, take);
          await stage.quiet();
          stage.faults += await struckCalls(stage);
          return judged(await stage.check(), [
            [`nobody followed (${heard.join(", ")})`, heard.length === 0],
          ]);
        });
      } finally {
        thief.close();
        thief.closeAllConnections();
      }
    },
  },
  {
    id: "A19",
    fault: "someone else changes the VM while the request waits",
    must: "the request is canceled, saying what changed",
    unknown: "none",
    run: ({ seed }) =>
      onStage({ seed, workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const vm = await take("vm restart");
        const [worker] = stage.workers();
        await worker?.arm({ point: "gate", do: "wait" });
        await stage.request("vm restart", vm);
        await worker?.hit("gate");
        await stage.service.edit("changeBehindTheBack", { vm, specs: { cpu: 32 } });
        stage.faults += 1;
        worker?.go();
        const [request] = await stage.quiet();
        return judged(await stage.check(), [
          [
            `cancelled with what changed (${request?.state}: ${request?.stage.why})`,
            request?.state === "cancelled" && /cpu/.test(request.stage.why ?? ""),
          ],
        ]);
      }),
  },
  underWeather({
    id: "A21",
    fault: "an answer of 50 MB",
    must: "reads find what was done",
    unknown: "no trace",
    weather: { hugeBytes: 50 * 1024 * 1024, times: 2 },
    each: 1,
    ends: found,
  }),
  underWeather({
    id: "A21b",
    fault: "an answer byte by byte",
    must: "reads find what was done",
    unknown: "no trace",
    weather: { dripMs: 100, times: 3 },
    each: 1,
    ends: found,
  }),
];
