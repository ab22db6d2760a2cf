import * as z from "zod";
import { UserError } from "../errors.ts";
import { plain } from "../messages/text.ts";
import type { ChangeCommand, Seen } from "../registry/define.ts";
import { checkInput } from "../registry/parse.ts";
import type { Person } from "../registry/person.ts";
import type { Target } from "../registry/target.ts";
import { type Argument, argumentsOf, flagName } from "../registry/usage.ts";
import type { Ask } from "./ask.ts";
import { namesWithin, submitAndTell } from "./change.ts";
import { gatherFacts, makeDialog } from "./dialog.ts";
import { type DialogMeta, inputOf } from "./dialog-view.ts";
import { isRefused, noteRefusal, refusalOf } from "./refuse.ts";
import { parseJson } from "./payload.ts";
import type { Reply } from "./reply.ts";
import { resolveTarget } from "./resolve.ts";
import { withSnapshotId } from "./resolve-snapshot.ts";
import { withTarget } from "./run-button.ts";
import { isChange, type Talk } from "./talk.ts";

type Submission = Extract<Ask, { kind: "submission" }>;
type Meta = DialogMeta & { values?: Record<string, unknown> };

const metaSchema: z.ZodType<Meta> = z.object({
  command: z.string(),
  targetId: z.string(),
  channelId: z.string(),
  threadTs: z
    .string()
    .regex(/^\d{1,20}\.\d{1,20}$/)
    .exactOptional(),
  sealedResponseUrl: z.string().exactOptional(),
  values: z.record(z.string(), z.unknown()).exactOptional(),
});

interface Read {
  command: ChangeCommand;
  meta: Meta;
  target: Target;
  input: Record<string, unknown>;
  person: Person;
}

/** Everything that is wrong with a submitted dialog, by field; undefined when it may be asked for. Nothing is done here. */
export async function checkDialog(
  ask: Submission,
  talk: Talk,
): Promise<{ errors: Record<string, string> } | undefined> {
  try {
    const read = await readDialog(ask, talk);
    const errors = fieldErrors(read, ask);
    if (Object.keys(errors).length > 0) return { errors };
    const { command, target, person, meta } = read;
    const vmNames = await namesWithin([target], talk);
    const asked = { command, targets: [target], person, channelId: meta.channelId, vmNames };
    const refused = refusalOf(asked, talk);
    if (!refused) return undefined;
    await noteRefusal(asked, refused.rule, talk);
    return { errors: { [lastField(command)]: refused.text } };
  } catch (error) {
    if (error instanceof UserError) return { errors: { [firstField(ask)]: error.message } };
    throw error;
  }
}

/** Writes the request down, after the ack. The facts are read again: what was shown may be minutes old. */
export async function submitDialog(ask: Submission, reply: Reply, talk: Talk): Promise<void> {
  const { command, meta, target, input, person } = await readDialog(ask, talk);
  const facts = await gatherFacts(command, target, input, talk);
  const notNow = command.effect.notNow as
    | ((seen: Seen, args: unknown) => { text: string; hint?: string } | undefined)
    | undefined;
  const refused = facts.seen && notNow?.(facts.seen, input);
  if (refused) throw new UserError(refused.text, refused.hint);
  const reason = String(ask.values["reason"] ?? "").trim();
  await submitAndTell(
    {
      command,
      input: withTarget(command, input, target),
      target,
      person,
      channelId: meta.channelId || person.id,
      via: "modal",
      askId: ask.id,
      ...(reason === "" ? {} : { reason }),
      ...(meta.threadTs ? { threadTs: meta.threadTs } : {}),
      ...(meta.sealedResponseUrl ? { sealedResponseUrl: meta.sealedResponseUrl } : {}),
    },
    facts,
    reply,
    talk,
  );
}

/** Something was chosen that changes which inputs belong on the form. */
export async function refreshDialog(
  ask: Extract<Ask, { kind: "button" }>,
  reply: Reply,
  talk: Talk,
): Promise<void> {
  if (!ask.view || ask.viewId === undefined) return;
  const meta = metaIn(ask.view.privateMetadata);
  const command = commandOf(meta, talk);
  const input = inputOf(command, meta.values ?? {}, ask.view.values);
  const target = await targetOf(command, meta, input, talk);
  const person = await talk.person(ask.userId, ask.teamId);
  // What it shows was read for this person: it isn't for everybody
  const asked = { command, targets: [target], person, channelId: meta.channelId };
  if (await isRefused(asked, reply, talk)) return;
  const { values: _carried, ...kept } = meta;
  await reply.update(
    ask.viewId,
    await makeDialog(command, target, input, kept, talk),
    ask.view.hash,
  );
}

async function readDialog(ask: Submission, talk: Talk): Promise<Read> {
  const meta = metaIn(ask.privateMetadata);
  const command = commandOf(meta, talk);
  const given = inputOf(command, meta.values ?? {}, ask.values);
  const target = await targetOf(command, meta, given, talk);
  const input = await withSnapshotId(command, given, target, talk);
  const person = await talk.person(ask.userId, ask.teamId);
  return { command, meta, target, input, person };
}

/** Throws UserError for anything that no dialog of this version carries. */
function metaIn(privateMetadata: string): Meta {
  const read = metaSchema.safeParse(parseJson(privateMetadata));
  if (!read.success) throw outdated();
  return read.data;
}

function outdated(): UserError {
  return new UserError("This dialog no longer works. Please ask again.");
}

function commandOf(meta: Meta, talk: Talk): ChangeCommand {
  const command = talk.commands.find(({ name }) => name === meta.command);
  if (!command || !isChange(command)) {
    throw outdated();
  }
  return command;
}

async function targetOf(
  command: ChangeCommand,
  meta: Meta,
  input: Record<string, unknown>,
  talk: Talk,
): Promise<Target> {
  if (command.on === "new-project") {
    const name = typeof input["name"] === "string" ? input["name"] : "";
    return { kind: "project", id: "", name, projectId: "", status: "" };
  }
  return resolveTarget(command.on, meta.targetId, talk.inventory);
}

function fieldErrors({ command, target, input }: Read, ask: Submission): Record<string, string> {
  // Without a prototype: a block may be called "constructor", and then an error on it must not count as there already
  const errors = Object.create(null) as Record<string, string>;
  const checked = checkInput(command, withTarget(command, input, target));
  const fields = new Map(argumentsOf(command).map((argument) => [argument.key, argument]));
  if ("problems" in checked) {
    for (const { key, text } of checked.problems) {
      const field = fields.get(key);
      const block = field && `arg:${key}` in ask.values ? `arg:${key}` : firstField(ask);
      errors[block] ??= field ? onForm(field, text) : text;
    }
  }
  if (command.class !== "destroy") return errors;
  // As it is shown: nobody can type what can't be seen
  const typed = plain(ask.values["confirm"] ?? "", 300);
  if (typed === "" || typed !== plain(target.name, 300))
    errors["confirm"] = `Type ${target.name} exactly as it is written here.`;
  const reason = String(ask.values["reason"] ?? "").trim();
  if (reason.length < 3) errors["reason"] = "Please say why: those who approve read it.";
  return errors;
}

/** A form has labels where words have flags: `--cpu must be…` reads `CPU must be…` there. */
function onForm({ key, label }: Argument, text: string): string {
  const written = [`${flagName(key)} `, `${key} `].find((start) => text.startsWith(start));
  return written ? `${label} ${text.slice(written.length)}` : text;
}

/** Errors can only be shown on inputs that are there. */
function firstField(ask: Submission): string {
  return Object.keys(ask.values)[0] ?? "reason";
}

function lastField(command: ChangeCommand): string {
  if (command.class === "destroy") return "reason";
  const visible = argumentsOf(command).filter(
    ({ target, isRolling }) => target === undefined && !isRolling,
  );
  return `arg:${visible.at(-1)?.key ?? ""}`;
}
