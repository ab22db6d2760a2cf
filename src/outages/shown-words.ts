import type { Policy } from "../config/policy-file.ts";
import type { Inventory } from "../inventory/inventory.ts";
import { ownerOf } from "../policy/judged.ts";
import { channelOfTeam, placeOf, scopeOfChannel, seesUnder } from "../policy/scope.ts";
import { targetArgument } from "../registry/arguments.ts";
import type { ChangeCommand } from "../registry/define.ts";
import { type ChangeInvocation, targetWords } from "../registry/invocation.ts";
import { parseCommand } from "../registry/parse.ts";
import type { RequestRecord } from "../requests/journal/record.ts";
import { isGlob } from "../text/glob.ts";

interface By {
  /** Read at each use: it may be another one by then. */
  readonly policy: Policy;
  /** All that there is. */
  inventory: Pick<Inventory, "findProject" | "seenIn">;
  commands: readonly ChangeCommand[];
}

/** A direct message has one reader, who did it. */
const isDirect = (channelId: string) => channelId.startsWith("D");

/** Where a recap speaks of a request: in its channel, or, where that may not see the target, in that of the target's team. */
export async function recapChannel(
  { target }: Pick<RequestRecord, "target">,
  channelId: string,
  { policy, inventory }: By,
): Promise<string> {
  const scope = scopeOfChannel(policy, channelId);
  if (!scope || isDirect(channelId)) return channelId;
  const { id, name } = ownerOf(target);
  const known = id === "" ? undefined : await inventory.findProject(id, { onlyKnown: true });
  const nameNow = known && "found" in known ? known.found.name : undefined;
  if (seesUnder(scope, id, [name, nameNow])) return channelId;
  return channelOfTeam(policy, placeOf(policy, { id, name: nameNow ?? name })) ?? channelId;
}

/**
 * What somebody typed in vain, as its channel may read it: as it is when all that it names may be told there, else without
 * names. Slack shows a slash command to nobody else.
 */
export async function shownWords(words: string, channelId: string, by: By): Promise<string> {
  const scope = scopeOfChannel(by.policy, channelId);
  if (!scope || isDirect(channelId)) return words;
  const [, sign = "", text = ""] = /^(\/|@gatehouse )?(.*)$/s.exec(words) ?? [];
  const parsed = parseCommand(text, by.commands);
  if ("refusal" in parsed) return `${sign}…`;
  const inventory = by.inventory.seenIn(async () => scope);
  const isTold = await namesOnly(parsed as ChangeInvocation, inventory, (name) =>
    scope.sees({ id: "", name }),
  ).catch(() => false);
  return isTold ? words : `${sign}${parsed.command.name} …`;
}

async function namesOnly(
  invocation: Pick<ChangeInvocation, "command" | "input">,
  inventory: Inventory,
  seesName: (projectName: string) => boolean,
): Promise<boolean> {
  const { command, input } = invocation;
  const { name } = input;
  // Of a project that is new, or is to be called so
  if (command.on !== "vm" && typeof name === "string" && !seesName(name)) return false;
  const kind = targetArgument(command)?.target;
  for (const word of targetWords(invocation).flatMap((one) => one.split(",").filter(Boolean))) {
    if (kind === "vm" && isGlob(word)) {
      if ((await inventory.matchVms(word)).length === 0) return false;
      continue;
    }
    const find = kind === "vm" ? inventory.findVm : inventory.findProject;
    if ("unknown" in (await find(word, { onlyKnown: true }))) return false;
  }
  return true;
}
