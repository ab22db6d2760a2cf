import * as fc from "fast-check";
import { commands } from "../../src/features/index.ts";
import type { SeenMessage } from "../../sandbox/slack/seen.ts";
import { dottedName } from "../../src/registry/define.ts";
import type { Pressed } from "../stories/forge.ts";
import { anyJson, anyWord } from "./texts.ts";

export interface Forged {
  who: string;
  button: Pressed;
  /** Laid over the payload, at paths like `container.message_ts`. */
  over: readonly (readonly [path: string, value: unknown])[];
}

/** People who may neither run nor approve anything, as their names in the sandbox. */
export const nobodies = ["vera", "gina", "dora", "stan", "deploybot"];

const everyAction = [
  "vote:approve",
  "vote:deny",
  "review:sign",
  "console:open",
  "digest:snooze",
  "menu",
  "dialog:refresh",
  "share",
  "request:cancel",
  "request:retry",
  "request:undo",
  "request:look",
  "request:later",
  "request:record",
  "request:show",
  "request:happened",
  "request:not-happened",
  "request:__proto__",
  "roll:open",
  "roll:again",
  "roll:pause",
  "roll:resume",
  "roll:stop",
  "roll:constructor",
  "run:",
  "run:__proto__",
  "vote:",
  "__proto__",
  "",
  "pick:vm",
  "arg:x",
  ...commands
    .filter(({ class: of }) => of !== "read")
    .map((command) => `run:${dottedName(command)}`),
];

export function forgedPress(
  messages: readonly SeenMessage[],
): fc.Arbitrary<{ on: SeenMessage; forged: Forged }> {
  const [first] = messages;
  const right = messages.flatMap((message) =>
    buttonsOn(message).map((button) => ({ on: message, button })),
  );
  const votes = right.filter(({ button }) => button.action.startsWith("vote:"));
  const ids = votes.map(({ button }) => (JSON.parse(button.value) as { request: string }).request);
  const digests = votes.map(
    ({ button }) => (JSON.parse(button.value) as { digest: string }).digest,
  );
  const anyValue = fc.oneof(
    fc.constantFrom(...right.map(({ button }) => button.value)),
    anyJson.map((value) => JSON.stringify(value)),
    anyWord,
    fc.constantFrom(
      "{}",
      "[]",
      "null",
      '{"vms":["vm-payments-web-2"]}',
      '{"project":"prj-ml"}',
      '{"vm":"vm-payments-web-2"}',
      '{"vm":"vm-payments-web-2","insist":"x"}',
      '{"reason":"x"}',
      '{"line":"vm:x"}',
      '{"roll":"__proto__"}',
      '{"__proto__":{"request":"x"}}',
    ),
    fc
      .record({
        request: fc.constantFrom(...ids, "", "__proto__", "*"),
        digest: fc.constantFrom(...digests, "", "0".repeat(16)),
      })
      .map((value) => JSON.stringify(value)),
  );
  const anyButton = fc.oneof(
    fc.constantFrom(...right.map(({ button }) => button)),
    fc.record({ action: fc.oneof(fc.constantFrom(...everyAction), anyWord), value: anyValue }),
  );
  const noise = fc.array(
    fc.tuple(
      fc.constantFrom(
        "container.message_ts",
        "container.channel_id",
        "container.is_ephemeral",
        "channel.id",
        "message.ts",
        "trigger_id",
        "response_url",
        "actions.0.block_id",
        "actions.0.type",
        "user.username",
        "state",
        "view.id",
        "view.private_metadata",
        "__proto__x",
        "token",
      ),
      fc.oneof(anyJson, anyWord, fc.constantFrom("C02STATUS", "V0X", "1.2", undefined)),
    ),
    { maxLength: 3 },
  );
  const onAny = fc.constantFrom(...messages);
  /** Whoever it is, they may do nothing with it. */
  const byNobody = fc
    .tuple(
      onAny,
      fc.constantFrom(...nobodies),
      anyButton,
      noise,
      fc.constantFrom<Forged["over"]>(
        [],
        [["user.id", "U0NOBODY"]],
        [["user.id", ""]],
        [["user", null]],
        [["user.id", "U0VERA"]],
      ),
    )
    .map(([on, who, button, over, as]) => ({
      on,
      forged: { who, button, over: [...over, ...as] },
    }));
  /** An approver, whose press says another request, digest, message or channel than what was shown. */
  const elsewhere = fc
    .tuple(
      fc.constantFrom(...votes),
      fc.constantFrom("amir", "ada"),
      fc.constantFrom("digest", "request", "channel", "message", "team", "stranger"),
      fc.nat({ max: 15 }),
      noise,
    )
    .map(([{ on, button }, who, what, at, over]) => {
      const value = JSON.parse(button.value) as { request: string; digest: string };
      const flip = (text: string) =>
        text.slice(0, at) + (text[at] === "a" ? "b" : "a") + text.slice(at + 1);
      const changed: Record<string, unknown> =
        what === "digest"
          ? { ...value, digest: at === 0 ? value.digest.slice(0, 8) : flip(value.digest) }
          : what === "request"
            ? {
                ...value,
                request:
                  at % 2 === 0
                    ? (ids.find((id) => id !== value.request) ?? "")
                    : `r-${"2".repeat(10)}`,
              }
            : { ...value };
      const others: Record<string, Forged["over"]> = {
        channel: [
          ["channel.id", "C02STATUS"],
          ["container.channel_id", "C02STATUS"],
        ],
        message: [
          ["container.message_ts", first?.ts === on.ts ? "1.2" : first?.ts],
          ["message.ts", "1.2"],
        ],
        team: [["user.team_id", "T0EVIL"]],
        stranger: [
          ["team.id", "T0EVIL"],
          ["user.team_id", "T0EVIL"],
          ["view", null],
        ],
      };
      const place = others[what] ?? [];
      // In a view a vote needs no card, so nothing else may make it right
      const harmless = over.filter(
        ([path]) => !/^(view|container|channel|message|user)/.test(path),
      );
      return {
        on,
        forged: {
          who,
          button: { action: button.action, value: JSON.stringify(changed) },
          over: [...harmless, ...place],
        },
      };
    });
  /** Who asked: no vote of theirs counts, whatever they press. */
  const byRequester = fc
    .tuple(
      fc.constantFrom(...votes),
      fc.constantFrom(
        "vote:approve",
        "vote:deny",
        "review:sign",
        "roll:open",
        "roll:stop",
        "request:undo",
        "request:happened",
      ),
      noise,
    )
    .map(([{ on, button }, action, over]) => ({
      on,
      forged: { who: "olivia", button: { action, value: button.value }, over },
    }));
  return fc.oneof(
    { weight: 5, arbitrary: byNobody },
    { weight: 4, arbitrary: elsewhere },
    { weight: 2, arbitrary: byRequester },
  );
}

function buttonsOn(message: SeenMessage): Pressed[] {
  return message.blocks.flatMap((block) =>
    ((block["elements"] ?? []) as Record<string, unknown>[])
      .filter(({ type }) => type === "button")
      .map((element) => ({
        action: String(element["action_id"]),
        value: String(element["value"]),
      })),
  );
}
