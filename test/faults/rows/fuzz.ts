import { Agent, request as httpRequest } from "node:http";
import { fuzzButtonValues } from "../../fuzz/button-values.ts";
import { type Delivery, forgedDeliveries } from "../../fuzz/forged-deliveries.ts";
import { describeFuzzed, type Fuzzed, withHands } from "../../fuzz/fuzzed.ts";
import { fuzzParser } from "../../fuzz/parser.ts";
import { fuzzServiceAnswers } from "../../fuzz/service-answers.ts";
import { fuzzViewState } from "../../fuzz/view-state.ts";
import { expected, fresh, judged, onStage, type Outcome, type Row } from "../row.ts";
import type { Stage } from "../stage.ts";

function outcomeOf(fuzzed: Fuzzed, cases: number, mayAccept: boolean): Outcome {
  const { crashes, wrong, accepted } = fuzzed;
  return expected(
    [
      [`${cases} cases, not ${fuzzed.cases}`, fuzzed.cases === cases],
      ["nothing crashes", crashes.length === 0],
      ["everything is as it should be", wrong.length === 0],
      [`nothing is accepted, not ${accepted}`, mayAccept || accepted === 0],
    ],
    [describeFuzzed(fuzzed), ...crashes.slice(0, 3), ...wrong.slice(0, 5)],
  );
}

export const fuzzRows: Row[] = [
  {
    id: "F1",
    what: "words of every kind for the parser",
    run: async ({ cases, seed }) => outcomeOf(fuzzParser({ cases, seed }), cases, true),
  },
  {
    id: "F2",
    what: "forged presses, rightly signed",
    run: async ({ cases, seed }) =>
      outcomeOf(await fuzzButtonValues({ cases, seed }), cases, false),
  },
  {
    id: "F3",
    what: "forged dialogs, rightly signed",
    run: async ({ cases, seed }) => outcomeOf(await fuzzViewState({ cases, seed }), cases, true),
  },
  {
    id: "F4",
    what: "answers of every kind from the service",
    run: async ({ cases, seed }) =>
      outcomeOf(await fuzzServiceAnswers({ cases, seed }), cases, true),
  },
  {
    id: "F5",
    what: "forged, replayed, mutated and foreign deliveries",
    run: ({ cases, seed }) =>
      onStage({ seed, receive: "http", workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const genuine = await genuineDelivery(stage, await take("vm stop"));
        await stage.quiet();
        const [gateway] = stage.gateways();
        const port = gateway?.port ?? 0;
        const before = await refusedSoFar(port);
        const seen = await sendAll(port, forgedDeliveries(cases, seed, genuine));
        stage.faults += cases;
        const counted = (await refusedSoFar(port)) - before;
        const journal = await stage.journal();
        // The same process, still the same after all that
        await stage.ask("vm stop", await take("vm stop"));
        const after = await stage.quiet();
        return judged(
          await stage.check(),
          [
            [`${cases} sent, not ${seen.sent}`, seen.sent === cases],
            [`0 accepted, not ${journal.length - 1}`, journal.length === 1],
            [
              `answered as they should be (${seen.odd.slice(0, 5).join("; ")})`,
              seen.odd.length === 0,
            ],
            [`/metrics counts each of them, not ${counted}`, counted === cases],
            [`0 crashes (${gateway?.lastWords().slice(-200)})`, gateway?.isGone() === false],
            ["a genuine command is taken afterwards", after.length === 2],
          ],
          {
            notes: [
              `${seen.sent} deliveries over HTTP in ${seen.seconds.toFixed(1)} s: 0 accepted, ${counted} counted as refused (${seen.kinds})`,
            ],
          },
        );
      }),
  },
];

/** What Slack sent when olivia typed, byte for byte. */
async function genuineDelivery(stage: Stage, vm: string) {
  const asked = await stage.ask("vm stop", vm);
  type Caught = { id: string; body: string; headers: Record<string, string> };
  const all = await stage.slack.ask<Caught[]>("deliveries", "command");
  const caught = all.find(({ id }) => id === asked.deliveryId);
  const { signingSecret } = await stage.slack.ask<{ signingSecret: string }>("settings", {});
  if (!caught) throw new Error("nothing was delivered");
  return {
    body: caught.body,
    seconds: Number(caught.headers["x-slack-request-timestamp"]),
    signature: caught.headers["x-slack-signature"] ?? "",
    secret: signingSecret,
  };
}

/** What the security counter stands at, all reasons together. */
async function refusedSoFar(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const lines = text
    .split("\n")
    .filter((line) => line.startsWith("gatehouse_refused_deliveries_total"));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

async function sendAll(port: number, all: Iterable<Delivery>) {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const odd: string[] = [];
  const kinds = new Map<string, number>();
  const began = performance.now();
  await withHands(16, all, async (one) => {
    const status = await send(port, agent, one);
    kinds.set(one.kind, (kinds.get(one.kind) ?? 0) + 1);
    // A large body may still be on its way when the answer comes and the connection ends
    const isRight = status === one.status || (one.status === 413 && status === 0);
    if (!isRight) odd.push(`${one.kind}: ${status}, not ${one.status}`);
  });
  agent.destroy();
  return {
    sent: [...kinds.values()].reduce((sum, count) => sum + count, 0),
    odd,
    kinds: [...kinds].map(([kind, count]) => `${count} ${kind}`).join(", "),
    seconds: (performance.now() - began) / 1000,
  };
}

/** The status; 0 when the connection ended before one came. */
async function send(port: number, agent: Agent, { body, headers }: Delivery): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const sending = httpRequest(
    {
      port,
      host: "127.0.0.1",
      path: "/slack/events",
      method: "POST",
      agent,
      headers: { ...headers, "content-length": body.length },
    },
    (answer) => {
      answer.resume();
      answer.once("end", () => resolve(answer.statusCode ?? 0));
      answer.once("error", () => resolve(answer.statusCode ?? 0));
    },
  );
  sending.on("error", () => resolve(0));
  sending.end(body);
  return promise;
}
