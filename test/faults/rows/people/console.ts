import { elementsIn } from "../../../../sandbox/slack/blocks/walk.ts";
import { describeSeen } from "../../../../sandbox/slack/describe-seen.ts";
import { hears } from "../../people/hearing.ts";
import { everythingKept } from "../../stage/kept.ts";
import { looking } from "../../stage/looking.ts";
import { judged, onStage, type Row } from "../row.ts";
import type { Stage } from "../../stage/stage.ts";

interface Press {
  user: { id: string };
  trigger_id: string;
  response_url?: string;
  actions: { value: string }[];
}

/** Olivia asks; resolves with the value of the button that is shown to her. */
async function offer(stage: Stage, vm: string): Promise<string> {
  await stage.slack.act("olivia", "types", "ops", `/vm console ${vm}`);
  const { blocks } = await hears(stage, "olivia", new RegExp(`console on ${vm} controls the VM`));
  const button = elementsIn(blocks).find(({ element }) => element["action_id"] === "console:open");
  return String(button?.element["value"]);
}

/** Sends a press that was caught once more: changed, and signed as Slack would. */
async function forge(stage: Stage, caught: Press, change: Partial<Press>): Promise<void> {
  // Its response URL would use up the five answers of the real press
  const { response_url: _hers, ...rest } = caught;
  const payload = { ...rest, trigger_id: `9.${stage.faults}`, ...change };
  const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
  const seconds = Math.floor(Date.now() / 1000);
  await stage.slack.question("sendRaw", body, {
    "content-type": "application/x-www-form-urlencoded",
    "x-slack-request-timestamp": String(seconds),
    "x-slack-signature": await stage.slack.question<string>("sign", seconds, body),
  });
  stage.faults += 1;
}

/** Which rules refused a press so far, and how often a console was opened. */
async function recorded(stage: Stage): Promise<Record<string, number>> {
  const rows = await stage.redis.xrange(`{${stage.namespace}}:audit`, "-", "+");
  const counts: Record<string, number> = {};
  for (const [, fields] of rows) {
    const record = JSON.parse(fields[fields.indexOf("record") + 1] ?? "{}") as {
      what?: string;
      rule?: string;
    };
    const name = record.rule ?? record.what ?? "";
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Resolves when the trail holds so many of it: an answer to a forged press is seen by nobody. */
async function untilRecorded(stage: Stage, name: string, count: number): Promise<void> {
  await looking(
    async () => (((await recorded(stage))[name] ?? 0) >= count ? true : undefined),
    5000,
    async () => `${count} times ${name}; there is ${JSON.stringify(await recorded(stage))}`,
  );
}

export const consoleRows: Row[] = [
  {
    id: "X11",
    fault: "a console's button pressed by others, twice, and late",
    must: "three openings by one person, each on record; no one else sees an address, and none is kept",
    unknown: "none",
    asksNothing: true,
    run: ({ seed }) =>
      onStage(
        { seed, receive: "http", workers: 0, consoleMs: 1500, direct: true },
        async (stage) => {
          const tokens = new Set<string>();
          const opens = async () => {
            const seen = await stage.slack.until("olivia", (now) =>
              [...describeSeen(now).matchAll(/token=([\w-]+)/g)].some(
                ([, t]) => !tokens.has(t ?? ""),
              ),
            );
            for (const [, token] of describeSeen(seen).matchAll(/token=([\w-]+)/g))
              tokens.add(token ?? "");
          };
          await stage.slack.edit("setGroupMembers", "oncall", ["olivia", "vera"]);
          const first = await offer(stage, "vm-0000-001");
          const { deliveryId } = await stage.slack.act("olivia", "presses", "Open console");
          await opens();
          const deliveries =
            await stage.slack.question<{ id: string; body: string }[]>("deliveries");
          const body = deliveries.find(({ id }) => id === deliveryId)?.body;
          const caught = JSON.parse(new URLSearchParams(body).get("payload") ?? "{}") as Press;

          // Slack's own delivery again, byte for byte; a second click; both must open nothing
          await stage.slack.question("redeliver", deliveryId);
          await forge(stage, caught, {});
          await untilRecorded(stage, "console.once", 1);

          const second = await offer(stage, "vm-0000-002");
          const pressing = (value: string) => ({
            actions: caught.actions.map((action) => ({ ...action, value })),
          });
          // Vera operates as well; amir approves; both may press what is theirs, not what is hers
          for (const id of ["U0VERA", "U0AMIR", "U0ADA", "U0STAN", "U0DEPLOYBOT"])
            await forge(stage, caught, { user: { id }, ...pressing(second) });
          await untilRecorded(stage, "console.requester", 2);
          const good = JSON.parse(second) as Record<string, unknown>;
          const forged = [
            { ...good, until: Date.now() - 1 },
            { ...good, until: "9999999999999" },
            { ...good, once: undefined },
            { vm: good["vm"], for: good["for"] },
          ];
          for (const value of forged) await forge(stage, caught, pressing(JSON.stringify(value)));
          await forge(stage, caught, pressing("{}"));
          await forge(stage, caught, pressing(second.slice(0, -4)));
          await forge(stage, caught, pressing(JSON.stringify({ ...good, vm: "vm-0000-099" })));
          await untilRecorded(stage, "console.time", 4);
          const consoles = async () =>
            (await stage.service.calls()).filter(({ path: at }) => at.endsWith("/console")).length;
          const before = await consoles();
          await stage.slack.act("olivia", "presses", "Open console", { value: second });
          await opens();
          const hersToo = await consoles();
          const told = await hears(stage, "amir", /olivia opened a console on vm-0000-002, until/);
          const others = await Promise.all(
            ["amir", "vera", "ada"].map((who) => stage.slack.seen(who)),
          );
          await stage.slack.until("olivia", (seen) => !describeSeen(seen).includes("wss://"));
          // Without a response URL it could be shown, but never taken away again
          await forge(stage, caught, pressing(await offer(stage, "vm-0000-003")));
          await hears(stage, "olivia", /vm-0000-003 was opened, but its address isn't shown/);
          const hers = await stage.slack.seen("olivia");
          const kept = await everythingKept(stage);
          const left = [...tokens].filter((token) => kept.includes(token));
          const trail = await recorded(stage);
          const verdict = await stage.check();
          // An address is no request, so the openings are counted here
          return judged(
            { ...verdict, twice: Math.max(0, (await consoles()) - 3) },
            [
              [`what was forged opened nothing (${before - 1})`, before === 1],
              [`hers still opens afterwards (${hersToo})`, hersToo === 2 && first !== second],
              [`each opening is on record (${trail["console"]})`, trail["console"] === 3],
              [
                `others see no address: ${told.text}`,
                others.every((seen) => !JSON.stringify(seen).includes("wss://")),
              ],
              ["what can't be taken away is not shown", !JSON.stringify(hers).includes("wss://")],
              [
                `no trace of ${tokens.size} addresses at their end (${left.length})`,
                tokens.size === 2 && left.length === 0,
              ],
            ],
            {
              notes: [
                Object.entries(trail)
                  .map(([name, n]) => `${name} ${n}`)
                  .join(", "),
              ],
            },
          );
        },
      ),
  },
];
