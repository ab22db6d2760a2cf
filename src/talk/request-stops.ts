import type { Journal } from "../core/request/journal.ts";
import { UserError } from "../errors.ts";
import { channelLink, md, type Markdown, name } from "../messages/markdown.ts";
import { mayPostIn } from "../slack/find-channel.ts";
import { ownerOf } from "../core/permit/refusal.ts";
import { channelOfProject, scopeOfPerson } from "../core/permit/access.ts";
import { type Permit, specify } from "../core/permit/permit.ts";
import { readTarget } from "../core/perform/read-target.ts";
import { isList } from "../core/request/seen.ts";
import { PickValue, withIds, withTarget } from "../registry/invocation.ts";
import { asksForMore, type Origin } from "../core/request/origin.ts";
import { stateWords } from "../core/request/stage.ts";
import { askedBy } from "../core/submit/submit.ts";
import type { GatewayContext } from "./gateway-context.ts";
import { channelForApproval } from "./request-channel.ts";
import { withKeptValues } from "./submit-change.ts";

/**
 * Says why submitting this permit would make no request now, beside the freeze, the limits, and the
 * approvers, which have lines of their own: by the same checks as `submitChange`, in its order. It
 * stores and counts nothing.
 */
export async function requestStops(
  given: Permit,
  origin: Origin | undefined,
  gateway: GatewayContext,
): Promise<readonly Markdown[]> {
  const { target, command } = given;
  let permit = given;
  const input = await refusalOf(async () => {
    const exact = await withIds(command, withTarget(command, given.input, target), target, gateway);
    permit = specify(given, exact);
  });
  const values = await refusalOf(async () => {
    ({ permit } = await withKeptValues(permit, gateway));
  });
  const place =
    permit.approvals.required > 0 ? await hiddenFromApprovers(permit, gateway) : undefined;
  const equal = origin && asksForMore(origin) ? undefined : await equalTo(permit, gateway);
  const stops = [input, values, place, await nameTaken(permit, gateway), equal];
  return stops.filter((stop) => stop !== undefined);
}

/** Why nobody else could see the request, which is canceled then. Rejects when Slack doesn't say. */
async function hiddenFromApprovers(
  { target, person, channelId }: Permit,
  gateway: GatewayContext,
): Promise<Markdown | undefined> {
  const { policy, web } = gateway;
  let channel = channelOfProject(policy, ownerOf(target));
  const refused = await refusalOf(async () => {
    channel ??= channelForApproval({ channelId, target, person }, gateway);
  });
  if (refused || channel === undefined || !/^[CG]/.test(channel)) return refused;
  const isOpen = await mayPostIn(web, channel, policy.sharedChannels);
  if (isOpen === undefined) throw new Error("Slack doesn't say whether Gatehouse may post there");
  return isOpen
    ? undefined
    : md`Gatehouse can't post in ${channelLink(channel)}, so no one could approve it. Use \`/invite @gatehouse\` there first.`;
}

/** Whether the gate would find the name of a new project taken, by one that the person sees. */
async function nameTaken(
  { command, target, person }: Permit,
  gateway: GatewayContext,
): Promise<Markdown | undefined> {
  if (command.on !== "new-project") return undefined;
  const { seen } = await readTarget(target, gateway);
  const scope = scopeOfPerson(gateway.policy, person, gateway.ourTeamId);
  const known = seen && isList(seen) ? seen.filter((project) => scope?.sees(project) ?? true) : [];
  const taken = command.effect.notNow?.(known);
  return taken && md`${[taken.text, taken.hint].filter(Boolean).join(" ")}`;
}

/** The sentences with which a check refuses; undefined when it passes. */
async function refusalOf(check: () => Promise<void>): Promise<Markdown | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    // Where several things have the typed name, a person picks one, and it goes on.
    if (error instanceof PickValue) return undefined;
    if (!(error instanceof UserError)) throw error;
    return md`${[error.message, error.hint].filter(Boolean).join(" ")}`;
  }
}

async function equalTo(
  permit: Permit,
  { store }: { store: Journal },
): Promise<Markdown | undefined> {
  const older = await store.findEqual(askedBy(permit, await store.now()));
  if (!older) return undefined;
  return md`You already requested this: ${name(older.record.id)} is ${stateWords(older.state)}, and it wouldn't be run again.`;
}
