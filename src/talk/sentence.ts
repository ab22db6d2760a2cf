import type { Policy } from "../config/policy-file.ts";
import { fold } from "../text/fold.ts";
import { type Message } from "../messages/blocks.ts";
import { sentence } from "../messages/card.ts";
import { Markdown, md, name as code } from "../messages/markdown.ts";
import { waysRow } from "../messages/parts.ts";
import { isRunIn } from "../core/permit/refusal.ts";
import { mayRun } from "../core/permit/permit.ts";
import { PickOne, targetOf } from "../core/submit/resolve-targets.ts";
import { commandWithRole } from "../registry/command-roles.ts";
import { type Command, type ReadCommand, dottedName, runButton } from "../registry/define.ts";
import { type Invocation, type Person, withTarget } from "../registry/invocation.ts";
import { parseInvocation } from "../registry/parse.ts";
import { maySeeNames } from "./authorize.ts";
import { type Act, type GatewayContext, personOf } from "./gateway-context.ts";
import { vmsNamedIn } from "./named-in-text.ts";
import { pickList } from "./run-buttons.ts";

/**
 * The read that answers a text which is no command but names VMs: a question finds its command,
 * everything else the VM's card. Several VMs are a list to pick from. Undefined when the text names
 * no VM that this person may see; a person who may see no names has none looked up.
 */
export async function meantBySentence(
  text: string,
  act: Act,
): Promise<{ invocation: Invocation } | { pick: Message } | undefined> {
  const { gateway } = act;
  const command = readFor(text, gateway.commands);
  if (!command || !maySeeNames(await personOf(act), gateway)) return undefined;
  const [vm, ...others] = (await vmsNamedIn(text, gateway.inventory)).map(targetOf);
  if (!vm) return undefined;
  if (others.length === 0)
    return { invocation: parseInvocation(command, withTarget(command, {}, vm)) };
  const isShared = others.every(({ name }) => name === vm.name);
  const which = isShared ? `are called ${vm.name}` : "are named in your message";
  const pick = new PickOne(`${others.length + 1} VMs ${which}. Which one?`, [vm, ...others], true);
  return { pick: pickList({ command, input: {} }, pick, act) };
}

/** The read that answers this text about a VM. Nothing but a plain read is run on a guess. */
function readFor(text: string, commands: readonly Command[]): ReadCommand | undefined {
  const asked = spoken(text);
  const isAsked = (question: string) =>
    asked.startsWith(question) && !/^[\p{L}\p{N}]/u.test(asked.slice(question.length));
  const reads = commands.filter(
    (command): command is ReadCommand => command.kind === "read" && command.class === "read",
  );
  return (
    reads.find(({ answersQuestions = [] }) => answersQuestions.some(isAsked)) ??
    commandWithRole(reads, "shows-vm")
  );
}

/** A text as questions are compared with it: folded, with one apostrophe, without what ends it. */
const spoken = (text: string): string =>
  fold(text)
    .replaceAll(/[’‘ʼ`´]/g, "'")
    .replaceAll(/\s+/g, " ")
    .replace(/^[\s/]+/, "")
    .replace(/[\s.,!?…:;]+$/, "");

/** The read for a text in people's own words that names no VM: `what's broken?` lists VMs. */
export function meantInOwnWords(
  text: string,
  commands: readonly Command[],
): Invocation | undefined {
  const asked = withoutRoot(spoken(text), commands);
  for (const command of commands) {
    if (command.kind !== "read" || command.class !== "read") continue;
    const input = command.inOwnWords?.(asked);
    if (input) return parseInvocation(command, input);
  }
  return undefined;
}

/** `/gatehouse what's broken` is asked as `what's broken` is. */
function withoutRoot(text: string, commands: readonly Command[]): string {
  const [root = ""] = text.split(" ", 1);
  const isRoot = commands.some(({ name }) => name.startsWith(`${root} `));
  return isRoot ? text.slice(root.length).trim() : text;
}

const thanks =
  /^(?:(?:ok|okay|no|great|perfect|nice|cool|awesome|super|many|oh|ah|yay|good|it works|that worked|works)[\s,.!]*)*(?:thanks?|thank you|thank u|thx|tx|ty|tysm|tyvm|cheers|much appreciated|merci|danke|gracias)(?: (?:a lot|a bunch|a ton|so much|very much|again|all|you|gatehouse|bot|mate|for .*))*$/;
const praise =
  /^(?:(?:great|perfect|nice|cool|awesome|super|excellent|wonderful|lovely|well done|good (?:bot|job|work)|nice (?:one|job|work)|you rock|👍|🙏|❤️|:\+1:|:thumbsup:|:pray:|:heart:)[\s,.!]*)+$/u;
const wayBack =
  /^(?:undo|un-do|revert|roll back|take (?:it|that) back|cancel|abort|never ?mind)(?: .*)?$/;

/** The answer to a text that asks for nothing that a command does. It offers no change. */
export function smallTalk(text: string, commands: readonly Command[]): Message | undefined {
  const words = withoutRoot(spoken(text), commands);
  if (thanks.test(words) || praise.test(words)) return sentence(md`You're welcome.`);
  if (!wayBack.test(words)) return undefined;
  return sentence(md`Nothing was done: no command undoes or cancels a change. ${howToUndo}`);
}

const howToUndo = md`What can be undone has a button on its card: _Undo_ after a restore, _Resize back_ after a resize that broke a VM's pin, and _Cancel_ while a request waits for approval. ${code("/gatehouse jobs")} shows what is running and waiting, ${code("/gatehouse why")} your last request.`;

/**
 * What Gatehouse is for, with buttons to begin with: the answer to a text that is no command and
 * names nothing.
 */
export function whatItIsFor(
  person: Person,
  channelId: string,
  gateway: Pick<GatewayContext, "commands" | "policy" | "ourTeamId">,
): Message {
  const { policy } = gateway;
  const start = startCommands(person, gateway).filter((command) =>
    isRunIn({ policy, command, channelId }),
  );
  if (start.length === 0)
    return sentence(
      md`Gatehouse operates VMs, and you can't run anything here. The team that runs Gatehouse can add you to \`gatehouse.yml\`.`,
    );
  const labels = start.map(({ startLabel }) => md`*${startLabel}*`);
  const list = new Intl.ListFormat("en-US", { type: "disjunction" }).format(labels.map(String));
  return sentence(
    md`Gatehouse operates VMs: try ${new Markdown(list)}.`,
    waysRow(start.map(startButton)),
  );
}

/** The commands that people begin with, as far as this person may run them. */
export const startCommands = (
  person: Person,
  {
    commands,
    policy,
    ourTeamId,
  }: { commands: readonly Command[]; policy: Policy; ourTeamId: string },
): Command[] =>
  commands.filter(
    (command) =>
      command.startLabel !== undefined && mayRun({ person, command }, { policy, ourTeamId }),
  );

export const startButton = (command: Command) =>
  runButton(command.startLabel ?? command.name, dottedName(command), {});
