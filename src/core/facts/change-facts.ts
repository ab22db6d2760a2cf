import type { Appraiser } from "../../attestation/appraiser.ts";
import { md, name } from "../../messages/markdown.ts";
import {
  type ChangeCommand,
  type Effect,
  type Seen,
  type Target,
  calledName,
  restoresSnapshot,
} from "../../registry/define.ts";
import type { Args } from "../../registry/invocation.ts";
import { checkInput } from "../../registry/parse.ts";
import { targetChange } from "../perform/gate.ts";
import { chosenSnapshot } from "../submit/chosen-snapshot.ts";
import { vmOf } from "../submit/resolve-targets.ts";
import type { Blocking, Considered, Fact, FactSource } from "./fact.ts";

/**
 * Says that a considered change isn't possible now, or leaves nothing to do. Knows nothing where
 * nobody considers one.
 */
export const changeFacts: FactSource = {
  name: "whether it is possible now",
  read: async ({ change, targets }) =>
    change ? targets.flatMap((target) => possibility(change, target) ?? []) : [],
};

/** Judges a change as the gate would, by what is known of its target. Pure. */
export function possibility(
  { command, facts, input }: Considered,
  target: Target,
): Fact | undefined {
  const called = name(calledName(target));
  const tell = (blocking: Blocking, text: Fact["text"]): Fact => ({
    kind: "change",
    about: target,
    severity: "info",
    sign: blocking === "fails" ? "🛑" : "💤",
    text,
    blocks: () => blocking,
  });
  const seen = facts ? facts.seen : target.kind === "vm" ? vmOf(target) : undefined;
  if (facts && !seen && target.id !== "")
    return deletesProject(command)
      ? tell("note", md`${called} is gone already: nothing would be sent.`)
      : tell("fails", md`${called} is gone.`);
  const changed = facts && seen && targetChange(target, seen);
  if (changed !== undefined) return tell("fails", md`${changed}.`);
  const effect: Effect<Seen, Args> = command.effect;
  const refused = seen && effect.notNow?.(seen);
  if (refused) return tell("fails", md`${refused.text}`);
  const read = checkInput(command, input);
  return seen && "args" in read && effect.already?.(seen, read.args)
    ? tell("note", md`${called} is already as wanted: nothing would be sent.`)
    : undefined;
}

const deletesProject = (command: ChangeCommand) =>
  command.on === "project" && command.deletes === true;

/** Says that a pinned VM would fail attestation after a considered change. */
export const pinFacts = (appraiser: Pick<Appraiser, "pinsOf">): FactSource => ({
  name: "pins",
  async read({ change, targets }) {
    if (!change || change.command.on !== "vm") return [];
    const pinned = await pinnedAmong(targets, appraiser);
    return targets.flatMap((target) =>
      pinned.has(target.id) ? (brokenPin(change, target) ?? []) : [],
    );
  },
});

/** The IDs of the VMs among these targets that are pinned. */
export async function pinnedAmong(
  targets: readonly Target[],
  appraiser: Pick<Appraiser, "pinsOf">,
): Promise<ReadonlySet<string>> {
  const vms = targets.filter(({ kind }) => kind === "vm");
  const pins = await Promise.all(vms.map((vm) => appraiser.pinsOf(vm)));
  return new Set(vms.flatMap(({ id }, n) => (pins[n]?.from === "nowhere" ? [] : [id])));
}

/** A pin that no longer matches once this is done. Pure. */
export function brokenPin({ command, facts }: Considered, target: Target): Fact | undefined {
  if (command.on !== "vm") return undefined;
  const then = "attestation fails until the pin is updated";
  const called = name(calledName(target));
  const tell = (text: Fact["text"]): Fact => ({
    kind: "pin",
    about: target,
    severity: "info",
    sign: "📌",
    text,
    blocks: () => "halts",
  });
  if (command.changesMeasurement)
    return tell(md`${called} is pinned, and this can change its measurement: then ${then}.`);
  const seen = facts?.seen;
  if (!restoresSnapshot(command) || !facts || !seen || !("projectId" in seen)) return undefined;
  const measuredThen = chosenSnapshot(facts)?.measurement;
  const measuredNow = seen.attestation?.measurement;
  if (measuredThen === undefined || measuredNow === undefined) return undefined;
  if (measuredThen === measuredNow) return undefined;
  return tell(
    md`${called} is pinned, and this snapshot was taken under another measurement: ${then}.`,
  );
}
