import type { AfterNote } from "../../attestation/render-attestation.ts";
import type { Policy } from "../../config/policy-file.ts";
import { sectionOf } from "../../config/policy-section.ts";
import type { Fact } from "../../core/facts/fact.ts";
import type { FactReader, FactsAbout } from "../../core/facts/facts-about.ts";
import { readerWithin } from "../../core/facts/reader-within.ts";
import { insteadInError } from "../../core/cards/render-result.ts";
import { scopeOfChannel } from "../../core/permit/access.ts";
import { isRunIn } from "../../core/permit/refusal.ts";
import type { Journal } from "../../core/request/journal.ts";
import type { StoredRequest } from "../../core/request/stored-request.ts";
import { targetOf } from "../../core/submit/resolve-targets.ts";
import { deadlineSignal } from "../../deadline.ts";
import type { Compute } from "../../fleet/compute/compute.ts";
import type { Inventory, Scope } from "../../fleet/inventory/inventory.ts";
import {
  type ChangeCommand,
  type Command,
  type Target,
  dottedName,
  isChange,
  requestable,
} from "../../registry/define.ts";
import type { RemedyPart } from "../alert-part.ts";
import type { StoredAlert } from "./alerts.ts";
import { readAdvice } from "./read-advice.ts";
import type { View, Vm } from "./render-alert.ts";
import { sourcesSection } from "./sources.ts";

/**
 * How many VMs are read at a time, even in a storm of alerts: changes need the compute service
 * more.
 */
const readsAtOnce = 10;
const readWithinMs = 1_000;
/** Commands offered on each VM, before those of the source's `offer`. */
const usual = ["vm.show", "vm.metrics", "vm.restart", "vm.start"];
const mostPresses = 3;

/** The present: Redis time (ms), and the freeze. */
export type Now = Pick<View, "frozen"> & { now: number };

export interface AlertViewOptions {
  store: Pick<Journal, "freezeState" | "getMany" | "recentIds">;
  inventory: Pick<Inventory, "seenIn">;
  compute: { vms: Pick<Compute["vms"], "get"> };
  commands: readonly Command[];
  config: { readonly policy: Policy };
  factsAbout: FactsAbout;
  projectName(id: string): Promise<string | undefined>;
  /** The note on an ended request about attesting its VM again. */
  attestationNote?: (
    request: StoredRequest,
    command: ChangeCommand,
  ) => Promise<AfterNote | undefined>;
  /** Tells which changes helped before, if a feature knows that. */
  remedies(): RemedyPart | undefined;
}

/** How a card is read. */
interface ViewedAs {
  /** Its readers see what the policy lets this channel see. */
  channelId: string;
  present: Now;
  /**
   * So many of its first VMs are read from the compute service, because only these can have
   * controls.
   */
  reads: number;
  /** The groups that are shown as one, whose requests are shown too. */
  together?: readonly StoredAlert[];
}

/** Creates the function that reads what a card about alerts shows. */
export function createAlertView(options: AlertViewOptions) {
  const { commands, store } = options;
  let reading = 0;

  return async function viewOf(
    alert: StoredAlert,
    { channelId, present: { now, frozen }, reads, together = [alert] }: ViewedAs,
  ): Promise<View> {
    const { policy } = options.config;
    const scope = scopeOfChannel(policy, channelId);
    const placed = await findVms(alert, { scope, reads, now });
    const vms = await addFacts(placed, alert, { scope, reads });
    const seen = new Set([...vms.values()].map(({ target }) => target.id));
    return {
      alert,
      vms,
      offered: offeredIn(channelId, alert),
      instead: insteadInError(commands),
      presses: await readPresses(together, seen),
      frozen,
      helpsWithinMs: policy.timing.remedyMs,
      policy,
    };
  };

  /** The commands that a card of this group offers on each VM. */
  function offeredIn(channelId: string, { record }: StoredAlert): readonly Command[] {
    const { policy } = options.config;
    const { offer = [] } = sectionOf(policy, sourcesSection)[record.source] ?? {};
    return [...new Set([...usual, ...offer])]
      .flatMap((operation) => commands.find((it) => dottedName(it) === operation) ?? [])
      .filter((command) => isRunIn({ policy, command, channelId }));
  }

  /** Finds those of a group's VMs that the readers see, by their labels. */
  async function findVms(
    { record }: StoredAlert,
    { scope, reads, now }: { scope: Scope | undefined; reads: number; now: number },
  ): Promise<readonly (readonly [string, Vm])[]> {
    const seen = options.inventory.seenIn(async () => scope);
    const known = record.vms.map(async ({ label, id }, n): Promise<(readonly [string, Vm])[]> => {
      const match = await seen.findVm(id, { onlyKnown: true }).catch(() => undefined);
      if (!match || !("record" in match) || match.record.id !== id) return [];
      const status = n < reads ? await statusNow(id) : undefined;
      const target = { ...targetOf(match.record), ...(status && { status }) };
      return [[label, { n, target, ...(status && { readAt: now }) }]];
    });
    return (await Promise.all(known)).flat();
  }

  async function addFacts(
    placed: readonly (readonly [string, Vm])[],
    alert: StoredAlert,
    { scope, reads }: { scope: Scope | undefined; reads: number },
  ): Promise<ReadonlyMap<string, Vm>> {
    const read = placed.flatMap(([, { n, target }]) => (n < reads ? [target] : []));
    const factsOn = await factsByVm(read, readerWithin(scope, options));
    const remedies = options.remedies();
    const withFacts = placed.map(async ([label, vm]): Promise<readonly [string, Vm]> => {
      if (vm.n >= reads) return [label, vm];
      const facts = factsOn(vm.target.id);
      const advice = await readAdvice(vm.target, alert, { remedies, scope });
      return [label, { ...vm, facts, refused: refusedBy(facts, commands), advice }];
    });
    return new Map(await Promise.all(withFacts));
  }

  /** Reads the last requests of these groups that the readers see. */
  async function readPresses(groups: readonly StoredAlert[], seen: ReadonlySet<string>) {
    const requests = groups.flatMap(({ record }) => record.requests.slice(-mostPresses));
    const made = await store.getMany(requests);
    const pressed = made.map(async (request) => {
      const { command: called, origin, target } = request.record;
      const command = commands.find(({ name }) => name === called);
      if (!command || !isChange(command)) return [];
      // A request that was made elsewhere is shown only to readers who see its VM.
      if (origin.kind !== "alert" && !seen.has(target.id)) return [];
      const note = request.final ? await options.attestationNote?.(request, command) : undefined;
      return [{ request, command, note }];
    });
    return (await Promise.all(pressed)).flat();
  }

  /** Reads the facts of these VMs at once: those about each, and those about everything. */
  async function factsByVm(
    vms: readonly Target[],
    reader: FactReader,
  ): Promise<(vmId: string) => readonly Fact[]> {
    const each = new Map(vms.map((vm) => [vm.id, vm]));
    const facts =
      each.size === 0
        ? []
        : await options.factsAbout([...each.values()], { reader, tellsRecent: true });
    return (vmId) => facts.filter(({ about }) => about === undefined || about.id === vmId);
  }

  /**
   * The VM's present status; undefined when the compute service doesn't answer in time or too many
   * reads run.
   */
  async function statusNow(id: string): Promise<string | undefined> {
    if (reading >= readsAtOnce) return undefined;
    reading += 1;
    const signal = deadlineSignal(readWithinMs);
    const vm = await options.compute.vms.get(id, { signal }).catch(() => undefined);
    reading -= 1;
    return vm?.status;
  }
}

/** Names of the changes that the compute service refused for the VM's ERROR, and would again. */
const refusedBy = (facts: readonly Fact[], commands: readonly Command[]): ReadonlySet<string> =>
  new Set(
    requestable(commands)
      .filter((command) =>
        facts.some((fact) => fact.kind === "status" && fact.blocks?.(command) === "fails"),
      )
      .map(({ name }) => name),
  );
