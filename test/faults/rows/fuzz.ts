import { Agent, request as httpRequest } from "node:http";
import { fuzzButtonValues } from "../../fuzz/button-values.ts";
import { fuzzEvidence } from "../../fuzz/evidence.ts";
import { flipEvidence } from "../../fuzz/evidence-flips.ts";
import { type Delivery, forgedDeliveries } from "../../fuzz/forged-deliveries.ts";
import { describeFuzzed, type Fuzzed, withHands } from "../../fuzz/fuzzed.ts";
import { fuzzParser } from "../../fuzz/parser.ts";
import { fuzzServiceAnswers } from "../../fuzz/service-answers.ts";
import { fuzzTeamRights } from "../../fuzz/team-rights.ts";
import { fuzzViewState } from "../../fuzz/view-state.ts";
import { expected, fresh, judged, onStage, type Story, type Row } from "./row.ts";
import type { Stage } from "../stage/stage.ts";

/** `accepts`: the least and the most that may lead to what they ask for, as shares of all cases. */
function outcomeOf(
  fuzzed: Fuzzed,
  { cases, accepts: [least, most] }: { cases: number; accepts: readonly [number, number] },
): Story {
  const { crashes, wrong, accepted } = fuzzed;
  return expected(
    [
      [`${fuzzed.cases} of ${cases} cases`, fuzzed.cases === cases],
      ["nothing crashes", crashes.length === 0],
      ["everything is as it should be", wrong.length === 0],
      [
        `${accepted} accepted (${least * 100} to ${most * 100} %)`,
        accepted >= least * cases && accepted <= most * cases,
      ],
    ],
    [describeFuzzed(fuzzed), ...crashes.slice(0, 3), ...wrong.slice(0, 5)],
  );
}

export const fuzzRows: Row[] = [
  {
    id: "F1",
    fault: "arbitrary words for the parser",
    must: "each is a command or refused in a sentence, within 50 ms",
    unknown: "not judged",
    alone: "how long each reading takes",
    run: async ({ cases, seed }) =>
      outcomeOf(fuzzParser({ cases, seed }), { cases, accepts: [0.1, 0.9] }),
  },
  {
    id: "F2",
    fault: "forged presses, correctly signed",
    must: "no vote, no request, no call",
    unknown: "not judged",
    run: async ({ cases, seed }) =>
      outcomeOf(await fuzzButtonValues({ cases, seed }), { cases, accepts: [0, 0] }),
  },
  {
    id: "F3",
    fault: "forged dialogs, correctly signed",
    must: "nothing the person couldn't request in words",
    unknown: "not judged",
    run: async ({ cases, seed }) =>
      outcomeOf(await fuzzViewState({ cases, seed }), { cases, accepts: [0, 0.2] }),
  },
  {
    id: "F4",
    fault: "arbitrary answers from the service",
    must: "each becomes a valid value or a known kind of failure",
    unknown: "not judged",
    run: async ({ cases, seed }) =>
      outcomeOf(await fuzzServiceAnswers({ cases, seed }), { cases, accepts: [0.1, 0.9] }),
  },
  {
    id: "F5",
    fault: "forged, replayed, mutated, and foreign deliveries",
    must: "none is taken; each is counted; a genuine command still works",
    unknown: "none",
    run: ({ cases, seed }) =>
      onStage({ seed, receive: "http", workers: 1 }, async (stage) => {
        const take = fresh(stage);
        const genuine = await genuineDelivery(stage, await take("vm stop"));
        await stage.quiet();
        const [gateway] = stage.gateways();
        const port = gateway?.port ?? 0;
        const probes = gateway?.opsPort ?? 0;
        const before = await refusedSoFar(probes);
        const seen = await sendAll(port, forgedDeliveries(cases, seed, genuine));
        stage.faults += cases;
        const counted = (await refusedSoFar(probes)) - before;
        const journal = await stage.journal();
        // The same process, still the same after all that
        await stage.request("vm stop", await take("vm stop"));
        const after = await stage.quiet();
        return judged(
          await stage.check(),
          [
            [`${cases} sent, not ${seen.sent}`, seen.sent === cases],
            [`0 accepted, not ${journal.length - 1}`, journal.length === 1],
            [
              `answered as they should be (${[...new Set(seen.odd)].slice(0, 5).join("; ")})`,
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
  {
    id: "F6",
    fault: "evidence and endorsements, altered and made up",
    must: "none counts as genuine; each is answered within 20 ms",
    unknown: "not judged",
    alone: "how long each verification takes",
    run: async ({ cases, seed }) =>
      outcomeOf(fuzzEvidence({ cases, seed }), { cases, accepts: [0, 0] }),
  },
  {
    id: "F7",
    fault: "each bit of a report of each AMD product flipped, and random bits of quotes",
    must: "none is verified",
    unknown: "not judged",
    run: async ({ cases, seed }) => {
      const ofQuotes = 2 * cases;
      const flips = flipEvidence({ ofReports: "every bit", ofQuotes, seed });
      const { tried, verified } = flips;
      return expected([
        [`${tried} bits`, tried >= 3 * 1184 * 8 + ofQuotes],
        [`none is verified (${verified.slice(0, 5).join("; ")})`, verified.length === 0],
      ]);
    },
  },
  {
    id: "F8",
    fault: "arbitrary policies with teams, people, and commands",
    must: "no one can change, vote on, or see another team's targets",
    unknown: "not judged",
    run: async ({ cases, seed }) =>
      outcomeOf(await fuzzTeamRights({ cases, seed }), { cases, accepts: [0.1, 0.5] }),
  },
];

/** What Slack sent when olivia typed, byte for byte. */
async function genuineDelivery(stage: Stage, vm: string) {
  const asked = await stage.request("vm stop", vm);
  type Caught = { id: string; body: string; headers: Record<string, string> };
  const all = await stage.slack.question<Caught[]>("deliveries", "command");
  const caught = all.find(({ id }) => id === asked.deliveryId);
  const { signingSecret } = await stage.slack.question<{ signingSecret: string }>("settings", {});
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
