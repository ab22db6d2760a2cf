import { fold } from "../../text/fold.ts";
import * as z from "zod";
import { glob as globShape } from "../../config/policy-values.ts";
import { type Subscription, subscriptionsOf } from "./subscriptions.ts";
import { UserError } from "../../errors.ts";
import { type Message } from "../../messages/blocks.ts";
import { paragraph } from "../../messages/parts.ts";
import { list, sentence } from "../../messages/card.ts";
import {
  type Markdown,
  channelLink,
  counted,
  lines,
  md,
  name,
  listed,
} from "../../messages/markdown.ts";
import { scopeShownTo } from "../../core/permit/access.ts";
import { compileTargetGlobs } from "../../core/permit/refusal.ts";
import { defineCommand, rest, runButton } from "../../registry/define.ts";
import { isGlob } from "../../text/glob.ts";
import { nearest } from "../../text/nearest.ts";
import { examplesHere } from "../../commands/examples.ts";
import { type ReadContext, noteInChannel } from "../../commands/context.ts";
import { type Topic, topics } from "../../core/events/event.ts";

/** The most names and globs that one channel can be subscribed to. */
const maxGlobs = 50;
const fewNames = 3;

export const subscribe = defineCommand({
  name: "gatehouse subscribe",
  aliases: ["subscriptions", "follow"],
  summary: "Tell this channel when VMs fail, drift, or are changed elsewhere",
  example: "/gatehouse subscribe payments/* trouble,drift,changes",
  class: "change",
  speaksFor: () => true,
  args: z.object({
    targets: z.string().max(500).optional().meta({
      isGlobs: true,
      description:
        "names or globs of VMs or projects: `payments`, `payments/web-*`, `web-*`; alone, the command shows what this channel is subscribed to",
    }),
    events: rest(
      200,
      "`trouble` (a VM goes to ERROR, or comes out of it), `drift` (attestation fails), `changes` (requested elsewhere); by default all",
    ).optional(),
  }),
  async answer({ targets = "", events: more = "" }, context: ReadContext) {
    checkPlace(context);
    const { channelId, person, now } = context;
    const subscriptions = subscriptionsOf(context);
    const before = await subscriptions.of(channelId);
    const words = readWords(`${targets} ${more}`);
    if (words.globs.length === 0) {
      if (words.events.length > 0) throw noneNamed();
      return shown(channelId, before, await exampleFor(context));
    }
    const all = new Set([...before.map(({ glob }) => glob), ...words.globs]);
    if (all.size > maxGlobs)
      throw new UserError(
        `A channel can be subscribed to ${maxGlobs} names and globs.`,
        "`/gatehouse unsubscribe` removes some.",
      );
    const meant = await meantBy(words.globs, context);
    const chosen = words.events.length > 0 ? words.events : topics;
    await noteInChannel(context, "subscribe", channelId, asNoted(words));
    for (const glob of words.globs)
      await subscriptions.set({ channelId, glob, events: chosen, by: person.id, at: now() });
    return sentence(
      lines(
        md`Gatehouse tells ${channelLink(channelId)} about ${listed(words.globs, maxGlobs)}: ${eventWords(chosen)}.`,
        meant,
      ),
    );
  },
});

/**
 * Says which VMs the globs match now, among those that the channel and the person may see. A glob
 * may match VMs that come later; a name must exist. Throws UserError.
 */
async function meantBy(globs: readonly string[], context: ReadContext): Promise<Markdown> {
  const { person, channelId, policy, ourTeamId } = context;
  const scope = scopeShownTo(person, channelId, policy, ourTeamId);
  const inventory = context.inventory.seenIn(async () => scope);
  const [vms, projects] = [await inventory.vms(), await inventory.projects()];
  const all = [
    ...projects.map((project) => ({ kind: "project" as const, ...project })),
    ...vms.map((vm) => ({ kind: "vm" as const, ...vm })),
  ];
  for (const glob of globs.filter((word) => !isGlob(word)))
    if (!all.some(compileTargetGlobs([glob])))
      throw new UserError(
        `There is no VM or project called ${glob} that this channel may see.`,
        slipIn(glob) ??
          "`/vm list` and `/project list` show them; a glob like `web-*` may match what comes later.",
      );
  const meant = vms.filter((vm) => compileTargetGlobs(globs)({ kind: "vm", ...vm }));
  const within = scope === undefined ? "" : " that this channel may see";
  if (meant.length === 0) return md`No VM${within} matches now; those that come later will.`;
  const names = meant.map((vm) => `${vm.projectName}/${vm.name}`);
  const match = meant.length === 1 ? "matches" : "match";
  return md`Now ${counted(meant.length, "VM")}${within} ${match}: ${listed(names, fewNames)}.`;
}

/** Suggests a topic for a misspelled one: `change` and `drifts` are probably no names. */
function slipIn(word: string): string | undefined {
  const topic = nearest(word, topics);
  return topic && `Did you mean \`${topic}\`?`;
}

/** An example that matches something here, among what the channel and the person may see. */
async function exampleFor({ inventory: all, ...context }: ReadContext): Promise<string> {
  const { person, channelId, policy, ourTeamId } = context;
  const scope = scopeShownTo(person, channelId, policy, ourTeamId);
  const inventory = all.seenIn(async () => scope);
  const exampleOf = await examplesHere({ commands: context.commands, inventory, policy });
  return exampleOf(subscribe);
}

function shown(channelId: string, all: readonly Subscription[], example: string): Message {
  if (all.length === 0)
    return sentence(md`${channelLink(channelId)} has no subscriptions. ${name(example)} adds one.`);
  const head = md`*${channelLink(channelId)} is subscribed to:*`;
  const rows = all.map((subscription) =>
    paragraph(
      md`• ${name(subscription.glob)}: ${eventWords(subscription.events)}`,
      runButton(
        "Unsubscribe",
        "gatehouse.unsubscribe",
        { targets: subscription.glob },
        subscription.glob,
      ),
    ),
  );
  return sentence(head, list(rows));
}

const usage = "Name VMs or projects, like `/gatehouse subscribe payments/* trouble,drift,changes`.";
export const noneNamed = () => new UserError("No VM or project is named.", usage);

/** Throws UserError outside of a channel, where nothing can be subscribed. */
export function checkPlace({ channelId }: { channelId: string }): void {
  if (!/^[CG]/.test(channelId)) throw new UserError("Run this in a channel.");
}

const isTopic = (word: string): word is Topic => topics.some((topic) => topic === word);

/** Reads names, globs, and topics in any order, separated by commas or spaces. Throws UserError. */
export function readWords(text: string) {
  const words = [...new Set(text.split(/[\s,，、﹐]+/).filter(Boolean))];
  const chosen = words.map(fold).filter(isTopic);
  const globs = words.filter((word) => !isTopic(fold(word)));
  const odd = globs.find((glob) => !globShape.safeParse(glob).success);
  if (odd !== undefined)
    throw new UserError(`${odd.slice(0, 40)} can't be the name of a VM or project.`, usage);
  return { globs, events: topics.filter((topic) => chosen.includes(topic)) };
}

/** The words as the audit trail stores them. */
export const asNoted = ({ globs, events: some }: ReturnType<typeof readWords>): string =>
  [...globs, ...some].join(" ").slice(0, 300);

/** The topics as text: `trouble, drift, and changes`. */
export const eventWords = (some: readonly Topic[]): string =>
  new Intl.ListFormat("en-US").format(some);
