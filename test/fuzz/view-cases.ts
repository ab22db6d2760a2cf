import * as fc from "fast-check";
import { commands } from "../../src/features/index.ts";
import { anyJson, anyWord } from "./texts.ts";
import { nobodies } from "./button-cases.ts";

/** A submission as somebody would send it who knows the signing secret. */
export interface Submitted {
  who: string;
  callback: string;
  metadata: string;
  /** Block id → what stands in it. */
  values: Readonly<Record<string, Entered>>;
}

export interface Entered {
  text: string;
  as: "input" | "option" | "user" | "list";
}

/** What the world holds that a submission could be about. */
export interface Known {
  /** Right `private_metadata` of dialogs that a person had open. */
  metadata: readonly string[];
  /** Of a rollout that was shown and not said yes to. */
  rollout: string;
  /** Ids and names of VMs and projects, those too that nobody may touch. */
  targets: readonly string[];
  requests: readonly string[];
}

/** Texts that look like `name`, or nearly. */
function nearly(name: string): string[] {
  return [
    name.toUpperCase(),
    ` ${name} `,
    `${name}\u200b`,
    `\u202e${name}`,
    `${name}.`,
    name.slice(0, -1),
    `${name}${name}`,
    `*`,
    `${name}*`,
    name.replaceAll("l", "1"),
    `"${name}"`,
    `\`${name}\``,
    `${name}\n${name}`,
  ];
}

export function anySubmission(known: Known): fc.Arbitrary<Submitted> {
  const target = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...known.targets) },
    { weight: 1, arbitrary: anyWord },
  );
  const close = fc
    .constantFrom(...known.targets)
    .chain((name) => fc.constantFrom(name, ...nearly(name)));
  const command = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.constantFrom(
        "project delete",
        "vm restore",
        "vm resize",
        "vm stop",
        "project update",
        "project create",
      ),
    },
    { weight: 2, arbitrary: fc.constantFrom(...commands.map(({ name }) => name)) },
    { weight: 1, arbitrary: anyWord },
  );
  const carried = fc.oneof(
    fc.constant(undefined),
    fc.constant({}),
    fc.dictionary(
      fc.constantFrom(
        "vm",
        "vms",
        "project",
        "snapshot",
        "noSafety",
        "cpu",
        "memory",
        "name",
        "type",
        "region",
        "force",
        "constructor",
      ),
      fc.oneof(target, anyJson, fc.constantFrom("4", "8", "snap-1", "TEE_VM", "eu-west-1", true)),
      { maxKeys: 4 },
    ),
  );
  const made = fc
    .record({
      command,
      targetId: target,
      channelId: fc.oneof(
        fc.constantFrom("C01OPS", "C02STATUS", "C06SECRET", "U0VERA", ""),
        anyWord,
      ),
      values: carried,
      threadTs: fc.option(anyWord, { nil: undefined }),
    })
    .map((meta) => JSON.stringify(meta));
  const bent = fc
    .tuple(
      fc.constantFrom(...known.metadata),
      fc.constantFrom(
        "command",
        "targetId",
        "channelId",
        "values",
        "threadTs",
        "roll",
        "isEverything",
        "request",
        "happened",
        "__proto__",
      ),
      fc.oneof(
        target,
        command,
        anyJson,
        fc.constantFrom(true, false, null, ...known.requests, known.rollout),
      ),
    )
    .map(
      ([right, key, value]) =>
        `${right.slice(0, -1)},${JSON.stringify(key)}:${JSON.stringify(value)}}`,
    );
  const metadata = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...known.metadata) },
    { weight: 6, arbitrary: made },
    { weight: 4, arbitrary: bent },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "",
        "null",
        "[]",
        "{",
        "7",
        '"x"',
        "{}",
        '{"__proto__":{"command":"project delete","polluted":true}}',
      ),
    },
    { weight: 1, arbitrary: anyJson.map((value) => JSON.stringify(value)) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        JSON.stringify({ roll: known.rollout }),
        JSON.stringify({ roll: known.rollout, isEverything: false }),
      ),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(...known.requests)
        .map((request) => JSON.stringify({ request, happened: true })),
    },
  );
  const text = fc.oneof(
    { weight: 3, arbitrary: close },
    { weight: 2, arbitrary: anyWord },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "because",
        "4",
        "8",
        "1",
        "10%",
        "snap-1",
        "true",
        "TEE_VM",
        "eu-west-1",
      ),
    },
  );
  const as = fc.oneof(
    { weight: 6, arbitrary: fc.constant("input" as const) },
    { weight: 1, arbitrary: fc.constantFrom("option" as const, "user" as const, "list" as const) },
  );
  const entered = fc.record({ text, as });
  const blocks = fc.dictionary(
    fc.constantFrom(
      "confirm",
      "reason",
      "arg:vm",
      "arg:vms",
      "arg:project",
      "arg:snapshot",
      "arg:cpu",
      "arg:memory",
      "arg:name",
      "arg:type",
      "arg:region",
      "arg:noSafety",
      "vm",
      "channel",
      "roll:most",
      "roll:failures",
      "roll:number",
      "roll:canary",
      "constructor",
    ),
    entered,
    { maxKeys: 6 },
  );
  const filled = fc
    .tuple(blocks, close, fc.boolean())
    .map(([values, name, isWhole]): Submitted["values"] =>
      isWhole
        ? {
            ...values,
            confirm: { text: name, as: "input" },
            reason: { text: "over and done", as: "input" },
          }
        : values,
    );
  const who = fc.oneof(
    { weight: 3, arbitrary: fc.constant("olivia") },
    { weight: 2, arbitrary: fc.constantFrom(...nobodies, "amir") },
  );
  const wild = fc.record({
    who,
    callback: fc.oneof(
      { weight: 8, arbitrary: fc.constant("dialog") },
      { weight: 3, arbitrary: fc.constantFrom("roll", "verdict", "pick-target") },
      { weight: 1, arbitrary: anyWord },
    ),
    metadata,
    values: filled,
  });
  return fc
    .oneof({ weight: 3, arbitrary: wild }, { weight: 1, arbitrary: nearlyRight(known, who) })
    .map((one) => (one.callback === "roll" && one.who === "olivia" ? withoutNumber(one) : one));
}

/** A dialog that destroys, right in everything but perhaps the name that was typed, the reason, and the person. */
function nearlyRight({ targets }: Known, who: fc.Arbitrary<string>): fc.Arbitrary<Submitted> {
  const about = fc.constantFrom<readonly [command: string, targetId: string, name: string]>(
    ["project delete", "prj-ml", "ml"],
    ["project delete", "prj-vault", "vault"],
    ["project delete", "prj-docs-site", "docs-site"],
    ["vm restore", "vm-payments-db-1", "db-1"],
    ["vm restore", "vm-vault-vault-1", "vault-1"],
  );
  return about.chain(([command, targetId, name]) =>
    fc
      .tuple(
        who,
        fc.constantFrom(name, targetId, ...nearly(name), ...targets),
        fc.constantFrom("", "x", "  ", "over and done"),
        fc.constantFrom<Entered["as"]>("input", "input", "option", "user", "list"),
        fc.constantFrom("C01OPS", "C02STATUS", ""),
      )
      .map(([person, text, reason, as, channelId]): Submitted => ({
        who: person,
        callback: "dialog",
        metadata: JSON.stringify({
          command,
          targetId,
          channelId,
          values: command === "vm restore" ? { snapshot: "snap-1" } : {},
        }),
        values: { confirm: { text, as }, reason: { text: reason, as: "input" } },
      })),
  );
}

/** Whoever planned a rollout may say yes to it, but not without the number that they have to type. */
function withoutNumber({ values, ...rest }: Submitted): Submitted {
  const { "roll:number": _typed, ...others } = values;
  return {
    ...rest,
    values: {
      ...others,
      "roll:most": { text: "1", as: "input" },
      "roll:failures": { text: "1", as: "input" },
    },
  };
}
