import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { type Policy, parsePolicy, policyVersion } from "../../src/config/policy-file.ts";
import type { Inventory } from "../../src/fleet/inventory/inventory.ts";
import { silentLog } from "../../src/log/log.ts";
import {
  type Command,
  type Target,
  dottedName,
  isChange,
  targetArgument,
} from "../../src/registry/define.ts";
import { type Person, mayNameSeveral } from "../../src/registry/invocation.ts";
import { vmsWithin, targetOf } from "../../src/core/submit/resolve-targets.ts";
import { proposeRollout } from "../../src/features/rollouts/propose-rollout.ts";
import { createRollouts } from "../../src/features/rollouts/rollouts.ts";
import { createConversation } from "../../src/talk/conversation.ts";
import { dialogCallback } from "../../src/talk/form-view.ts";
import type { GatewayContext } from "../../src/talk/gateway-context.ts";
import { severalHandlerOf } from "../../src/talk/service-keys.ts";
import type { Interaction, Reply } from "../../src/slack/receive/interaction.ts";
import { runPolicy } from "../../src/cli/policy.ts";
import { type Reading, startReading } from "../commands/reading.ts";
import { ourTeamId } from "../core/permit/sample.ts";
import { type Fuzzed, createTally, sampled } from "./fuzzed.ts";
import { commands, handedToPrograms, policyTerms } from "../../src/features/index.ts";
import { refusal } from "../../src/core/permit/refusal.ts";
import { pickCallback } from "../../src/talk/pick-target.ts";

/** A policy, and people who ask something under it. */
interface Asking {
  file: string;
  policy: Policy;
  asked: readonly Triple[];
}

/** Who runs which command on what, and where. */
interface Triple {
  person: Person;
  command: Command;
  /** Which of those that the command could be about. */
  at: number;
  channelId: string;
  newName: string;
}

const people = ["U0A", "U0B", "U0C", "S0X", "S0Y"];
const claims = ["payments", "vault", "staging", "ml", "prj-ml", "docs-*", "edge-?ache", "pay*"];
const list = fc.subarray([...people, "*"], { maxLength: 2 });
const lists = fc.record({ view: list, operate: list, approve: list, breakGlass: list });
/** `why` and `approvals` are about requests, `can-i` is an API itself, and what freezes or posts would outlast its case. */
const outlast = new Set(["why", "can-i", "freeze", "thaw", "audit", "status", "help"]);
const askable = commands.filter(({ name }) => !outlast.has(name.replace("gatehouse ", "")));

const triple: fc.Arbitrary<Triple> = fc.record({
  person: fc.record({
    id: fc.constantFrom("U0A", "U0B", "U0C"),
    teamId: fc.constantFrom(ourTeamId, ourTeamId, ourTeamId, ourTeamId, "T0THEIRS"),
    name: fc.constant("someone"),
    kind: fc.constantFrom<Person["kind"]>("member", "member", "member", "member", "guest", "bot"),
    groups: fc.subarray(["S0X", "S0Y"]),
  }),
  command: fc.constantFrom(...askable),
  at: fc.nat(20),
  channelId: fc.constantFrom("C0ANY", "C0ANY", "C0TEAM0", "C0TEAM1"),
  newName: fc.constantFrom("payments-2", "vault-new", "ml", "else", "docs-new"),
});

const asking: fc.Arbitrary<Asking> = fc
  .record({
    access: lists,
    administer: fc.subarray(people, { maxLength: 1 }),
    teams: fc.tuple(lists, lists),
    owners: fc.tuple(...claims.map(() => fc.integer({ min: 0, max: 2 }))),
    channels: fc.constantFrom(undefined, undefined, ["C0ANY"], ["C0TEAM0", "C0TEAM1"]),
    protect: fc.subarray(["vault-*", "db-1", "docs-*", "payments-2"], { maxLength: 2 }),
    rule: fc.constantFrom("vm.*", "project.*", "vm.console", "vm.restart"),
    targets: fc.constantFrom(undefined, ["payments"], ["ml", "db-*"]),
    asked: fc.array(triple, { minLength: 10, maxLength: 10 }),
  })
  .filter(({ owners }) => owners[0] === owners[7] && owners[3] === owners[4])
  .map(({ access, administer, teams, owners, channels, protect, rule, targets, asked }) => {
    const made = teams.flatMap((team, index) => {
      const projects = claims.filter((_, claim) => owners[claim] === index);
      // Somebody must be able to approve, and to sign a review
      const whole = { projects, ...team, approve: [...team.approve, "S0REVIEW"] };
      return projects.length > 0
        ? [[`team-${index}`, { ...whole, channel: `C0TEAM${index}` }] as const]
        : [];
    });
    const file = JSON.stringify({
      access: { ...access, approve: [...access.approve, "S0REVIEW"], administer },
      teams: Object.fromEntries(made),
      approvals: [{ operations: [rule], required: 1, ...(targets ? { targets } : {}) }],
      ...(channels ? { channels } : {}),
      protect,
      limits: { requestsPerMinute: 10_000, draftsPerPerson: 10_000, destructivePerHour: 10_000 },
    });
    const read = parsePolicy(file, "gatehouse.yml", policyTerms);
    if ("problems" in read) throw new Error(read.problems.join("\n"));
    return { file, policy: read.policy, asked };
  });

/**
 * Whoever asks for anything, under any policy, gets one answer: from the rules, from typed words, a mention, a button, a picker, a
 * rollout, `can-i`, and `policy explain`. `cases` are those who ask, ten under each policy.
 */
export async function fuzzOneAnswer({ cases, seed }: { cases: number; seed: number }) {
  const tally = createTally();
  const answers = new Map<string, { yes: number; no: number }>();
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-one-answer-"));
  await using here = await startReading({ world: "demo" });
  const every = await targetsIn(here);
  const askUnder = async ({ file, policy, asked }: Asking, n: number) => {
    const path = join(folder, `${n}.yml`);
    writeFileSync(path, file);
    const askAll = async (one: Triple) => {
      tally.count();
      const target = targetFor(one, every);
      const began = performance.now();
      const right = await byTheRules(one, target, policy, here);
      if (right) tally.accept();
      for (const [way, ask] of Object.entries(waysToAsk(one, target))) {
        const answer = await ask({ path, policy, here });
        if (answer === undefined) continue;
        const count = answers.get(way) ?? { yes: 0, no: 0 };
        answers.set(way, count);
        count[answer.may ? "yes" : "no"] += 1;
        if (answer.may !== right)
          tally.wrong(
            `${way} says ${answer.may ? "yes" : "no"}, the rules ${right ? "yes" : "no"}: ${answer.said} (${wordsOf(one, target)}, ${JSON.stringify({ ...one, command: one.command.name })} under ${file})`,
          );
      }
      tally.took(performance.now() - began);
    };
    for (const one of asked) await askAll(one);
  };
  const all = [...sampled(asking, { cases: cases / 10, seed })];
  // Many wait for Redis at once
  for (let from = 0; from < all.length; from += atOnce)
    await Promise.all(all.slice(from, from + atOnce).map((one, n) => askUnder(one, from + n)));
  rmSync(folder, { recursive: true });
  const counts = [...answers].map(([way, { yes, no }]) => `${way} ${yes} + ${no}`).join(", ");
  return { ...tally.result(`yes + no: ${counts}`), answers } satisfies Fuzzed & {
    answers: unknown;
  };
}

const atOnce = 25;

interface Where {
  path: string;
  policy: Policy;
  here: Reading;
}

type Way = (where: Where) => Promise<{ may: boolean; said: string } | undefined>;

async function targetsIn({ inventory }: Reading): Promise<readonly Target[]> {
  const [vms, projects] = [await inventory.vms(), await inventory.projects()];
  return [...vms, ...projects].map(targetOf);
}

function targetFor({ command, at, newName }: Triple, every: readonly Target[]): Target | undefined {
  if (isChange(command) && command.on === "new-project")
    return { kind: "project", id: "", name: newName, projectId: "", status: "" };
  const kind = targetArgument(command)?.target;
  const fitting = every.filter((target) => target.kind === kind);
  return fitting[at % Math.max(1, fitting.length)];
}

const whole = (target: Target) =>
  target.kind === "vm" ? `${target.projectName}/${target.name}` : target.name;

/** What each command takes beside its target. */
const more: Readonly<Record<string, Record<string, string>>> = {
  "vm resize": { cpu: "2", memory: "4" },
  "vm restore": { snapshot: "snap-1" },
  "project create": { type: "CONTAINER", region: "eu-west-1" },
  "gatehouse digest": { action: "off" },
  "gatehouse unsubscribe": { targets: "web-*" },
};

function inputOf({ command, newName }: Triple, word: string | undefined) {
  const named = targetArgument(command);
  const target = named && word !== undefined ? { [named.key]: named.isList ? [word] : word } : {};
  const isNamed = isChange(command) && command.on !== "vm" && command.class !== "destroy";
  return { ...target, ...more[command.name], ...(isNamed ? { name: newName } : {}) };
}

function wordsOf(one: Triple, target: Target | undefined, times = 1): string {
  const named = targetArgument(one.command)?.key;
  const { command } = one;
  const options = Object.entries(inputOf(one, undefined)).map(([key, value]) =>
    command.name === "vm restore" || command.name.startsWith("gatehouse")
      ? value
      : `--${key} ${value}`,
  );
  const words = named && target ? Array<string>(times).fill(whole(target)) : [];
  return [command.name, ...words, ...options].join(" ");
}

async function byTheRules(
  one: Triple,
  target: Target | undefined,
  policy: Policy,
  { inventory }: Reading,
): Promise<boolean> {
  const { person, command, channelId } = one;
  const targets = target ? [target] : [];
  const input = inputOf(one, target && whole(target));
  const vms = await vmsWithin(targets, { inventory });
  const asked = { policy, person, ourTeamId, command, targets, input, channelId, vms };
  return refusal(asked) === undefined;
}

function waysToAsk(one: Triple, target: Target | undefined): Record<string, Way> {
  const { command, person, channelId } = one;
  const typed = wordsOf(one, target);
  const input = inputOf(one, target && (target.id || undefined));
  const base = { at: Date.now(), userId: person.id, teamId: person.teamId, channelId };
  const named = targetArgument(command);
  const acts = (interaction: (id: string) => Interaction): Way => {
    return (where) => act(interaction, one, where);
  };
  const ways: Record<string, Way> = {
    words: acts((id) => ({ ...base, id, kind: "command", text: typed })),
    mention: acts((id) => ({ ...base, id, kind: "mention", text: typed })),
    button: acts((id) => ({
      ...base,
      id,
      kind: "button",
      action: `run:${dottedName(command)}`,
      value: JSON.stringify(input),
      ephemeral: true,
    })),
    "can-i": (where) => canI(typed, one, where),
    explain: (where) => explain(one, target, where),
  };
  if (named && target)
    ways["picker"] = acts((id) => ({
      ...base,
      id,
      kind: "submission",
      callback: pickCallback,
      viewId: "V0",
      privateMetadata: JSON.stringify({
        command: command.name,
        values: { ...inputOf(one, undefined) },
        channelId,
      }),
      values: { [named.target ?? ""]: target.id },
    }));
  if (isChange(command) && target)
    ways["form"] = acts((id) => ({
      ...base,
      id,
      kind: "submission",
      callback: dialogCallback,
      viewId: "V0",
      privateMetadata: JSON.stringify({
        command: command.name,
        targetId: target.id,
        channelId,
        values: inputOf(one, undefined),
      }),
      values: { confirm: target.name, reason: "Tried in each way." },
    }));
  if (isChange(command) && mayNameSeveral(command) && named?.isList)
    ways["rollout"] = acts((id) => ({
      ...base,
      id,
      kind: "command",
      text: wordsOf(one, target, 2),
    }));
  return ways;
}

/** Sentences that say no by policy, or that something isn't there for this person. */
const refusals = [
  /^(No\. )?(Only .* can |Nobody can .* yet\.|You can't )/,
  /^(No\. )?(Guests can't do this|Bots and workflows can't run|This is only for members)/,
  /changes something, so it (must|can't) be run/,
  / is protected: it can't be/,
  / can't get this name: /,
  /^There is no (VM|project) called/,
  /^None of the \d+ VMs? is eligible to \w+: (protected by|you aren't in) /,
];

let asks = 0;

async function act(
  interaction: (id: string) => Interaction,
  { person }: Triple,
  { policy, here }: Where,
): Promise<{ may: boolean; said: string }> {
  const said: string[] = [];
  const opened: string[] = [];
  const reply: Reply = {
    privately: async ({ text }) => void said.push(text),
    instead: async ({ text }) => void said.push(text),
    replace: async ({ text }) => (said.push(text), true),
    open: async (view) => {
      opened.push(...textsIn(view));
      return "V1";
    },
    update: async (_id, view) => void opened.push(...textsIn(view)),
  };
  const gateway = contextOf(policy, person, here);
  const watch = { refused: () => undefined };
  const conversation = createConversation(() => gateway, gateway.contributed, watch);
  asks += 1;
  const asked = interaction(`ask-${asks}`);
  const early = asked.kind === "submission" ? await conversation.submitBeforeAck(asked) : undefined;
  if (early === undefined) await conversation.handleInteraction(asked, reply);
  const all = [...Object.values(early?.errors ?? {}), ...said, ...opened];
  const isRefused = all.some((text) => refusals.some((one) => one.test(plainly(text))));
  return { may: !isRefused, said: all.map(plainly).join(" | ").slice(0, 200) };
}

/** Every text that a view shows. */
function textsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    key === "text" && typeof inner === "string" ? [inner] : textsIn(inner),
  );
}

const plainly = (text: string) => text.replaceAll(/[`*_]/g, "").replaceAll("&amp;", "&");

function contextOf(policy: Policy, person: Person, { context, journal }: Reading): GatewayContext {
  const { redis, key } = context.trail;
  return {
    ...context,
    policy,
    policyVersion: policyVersion(policy),
    standstill: () => undefined,
    store: journal,
    sees: async () => true,
    contributed: {
      answeredForAll: [],
      presses: {},
      pickers: {},
      forms: {},
      requestMade: async () => undefined,
    },
    services: new Map([
      ...context.services,
      severalHandlerOf.providedBy(proposeRollout(createRollouts(redis, key))),
    ]),
    attestationNote: async () => undefined,
    factsAfter: async () => [],
    inventory: onlyKnown(context.inventory),
    apiUrl: "",
    web: { call: async () => ({ ok: false, kind: "refused", error: "not_here" }) } as never,
    person: async () => person,
    membersOf: async () => () => undefined,
    status: async () => [],
    announce: async () => true,
    answerNotices: async () => undefined,
    log: silentLog(),
  };
}

/** What isn't known isn't looked for in the service, which is most of the time otherwise. */
function onlyKnown(inventory: Inventory): Inventory {
  return {
    ...inventory,
    findVm: (words) => inventory.findVm(words, { onlyKnown: true }),
    findProject: (words) => inventory.findProject(words, { onlyKnown: true }),
    seenIn: (scope) => onlyKnown(inventory.seenIn(scope)),
  };
}

async function canI(words: string, one: Triple, where: Where) {
  const { person, channelId } = one;
  const base = { at: Date.now(), userId: person.id, teamId: person.teamId, channelId };
  const text = `gatehouse can-i ${words}`;
  const answer = await act((id) => ({ ...base, id, kind: "command", text }), one, where);
  if (/can run \/gatehouse can-i|You can't run \/gatehouse can-i/.test(answer.said))
    return undefined;
  return { ...answer, may: answer.may && !answer.said.startsWith("No. ") };
}

/** For full members alone, as a terminal knows nobody else. */
async function explain(
  { person, command, channelId, newName }: Triple,
  target: Target | undefined,
  { path, here }: Where,
) {
  if (person.kind !== "member" || person.teamId !== ourTeamId) return undefined;
  const isNamed = isChange(command) && command.on === "project" && command.renames === true;
  const vms = target ? await vmsWithin([target], here) : [];
  let said = "";
  const code = await runPolicy(
    [
      "explain",
      `--file=${path}`,
      `--as=${person.id}`,
      `--groups=${person.groups.join(",")}`,
      `--in=${channelId}`,
      `--vms=${vms.map(({ name }) => name).join(",")}`,
      dottedName(command),
      ...(target ? [whole(target)] : []),
      ...(isNamed ? ["--name", newName] : []),
    ],
    { ...handedToPrograms, file: path, slack: "not asked", write: (text) => void (said += text) },
  );
  return { may: code === 0, said };
}
