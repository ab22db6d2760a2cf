import { describeChange } from "../../core/cards/asking.ts";
import type { Considered } from "../../core/facts/fact.ts";
import { joined, maxNamed } from "../../core/permit/approval-rule.ts";
import type { Permit } from "../../core/permit/permit.ts";
import { requestStops } from "../../talk/request-stops.ts";
import type { Origin } from "../../core/request/origin.ts";
import { hourlyOf } from "../../core/request/rate-limits.ts";
import { messageOf } from "../../errors.ts";
import { counted } from "../../messages/markdown.ts";
import {
  type ChangeCommand,
  type DialogFacts,
  type Target,
  calledName,
  nounOf,
} from "../../registry/define.ts";
import { chosenSnapshot } from "../../core/submit/chosen-snapshot.ts";
import { approvalWords, approversOf } from "../../talk/approvers-of.ts";
import { gatherFacts, labelsOf } from "../../talk/dialog-facts.ts";
import { type GatewayContext, factReader } from "../../talk/gateway-context.ts";
import type { Rehearsal } from "../../talk/service-keys.ts";
import { permitByFacts } from "../../talk/permit-by-facts.ts";
import { earlierRuns, mostRead } from "./earlier-runs.ts";
import { type RehearsalFacts, tellRehearsal } from "./tell-rehearsal.ts";

/** Runs reads that may fail, and notes the names of those that did. */
function createReader({ log }: Pick<GatewayContext, "log">) {
  const unread: string[] = [];
  return {
    unread,
    async read<T, E>(subject: string, reading: () => Promise<T>, otherwise: E): Promise<T | E> {
      try {
        return await reading();
      } catch (error) {
        log.info("rehearsal.unread", { subject, why: messageOf(error) });
        unread.push(subject);
        return otherwise;
      }
    },
  };
}
type Reader = ReturnType<typeof createReader>;

/**
 * Answers “What would happen?”, from what Gatehouse knows and one read of a single target. Each read
 * that fails is named in the answer.
 */
export function createRehearsal(): Rehearsal {
  return {
    async rehearse({ permit: given, origin, atOnce = 1 }, gateway) {
      const reader = createReader(gateway);
      const { command, targets, person } = given;
      const { permit, facts } = await readState(given, gateway, reader);
      const { input, approvals, isBreakGlass: breakGlass } = permit;
      const { store, policy } = gateway;
      const { read } = reader;
      const change: Considered = { command, input, facts };
      const isDraft = approvals.required > 0;
      const hourly = hourlyOf(command, { breakGlass, origin: { kind: "typed" } });
      const asked = { personId: person.id, hourly, isDraft, limits: policy.limits };
      const [whoCan, freeze, limit, stops, known, earlier] = await Promise.all([
        read("who could approve", () => whoCouldApprove(permit, origin, gateway), {}),
        read("whether changes are frozen", () => store.freezeState(), undefined),
        read("limits", () => store.limitRefusal(asked), undefined),
        // Each VM of a rollout is a request of its own, made later.
        read(
          "what would refuse it",
          async () => (targets.length === 1 ? requestStops(permit, origin, gateway) : []),
          [],
        ),
        gateway.factsAbout(targets, { reader: factReader(gateway), change }),
        read("earlier runs", () => readEarlier(command, targets, gateway), undefined),
      ]);
      const snapshot = facts && chosenSnapshot(facts);
      const rehearsal: RehearsalFacts = {
        command,
        targets,
        deed: deedOfPermit(permit, facts),
        atOnce,
        approval: undefined,
        // A target that couldn't be read may need more than its name says.
        needsNobody: !isDraft && !breakGlass && (targets.length > 1 || facts !== undefined),
        nobody: undefined,
        ...whoCan,
        freeze,
        limit,
        stops,
        known,
        earlier,
        lost: lostBy(change, targets, gateway.now()),
        snapshotAt: snapshot?.at,
        unread: reader.unread,
      };
      return tellRehearsal(rehearsal);
    },
  };
}

/** Says what is permitted. A snapshot has its name, where the facts tell it. */
function deedOfPermit(
  { asking, command, targets, input }: Permit,
  facts: DialogFacts | undefined,
): string {
  const [target, ...others] = targets;
  if (!target || others.length > 0) return `${command.say.verb} ${counted(targets.length, "VM")}`;
  if (asking.basis.kind === "undo") return `Undo the ${nounOf(command)} of ${calledName(target)}`;
  return describeChange(
    { target, input, ...(facts ? labelsOf({ ...facts, input }) : {}) },
    command,
  );
}

/** Reads the one target, and decides the permit again by that. Several are known from their lists. */
async function readState(
  given: Permit,
  gateway: GatewayContext,
  { read }: Reader,
): Promise<{ permit: Permit; facts: DialogFacts | undefined }> {
  const { command, targets, input } = given;
  const [target, ...others] = targets;
  if (!target || others.length > 0) return { permit: given, facts: undefined };
  const gather = () => gatherFacts(command, target, input, gateway);
  const facts = await read(`the state of ${target.name}`, gather, undefined);
  if (!facts) return { permit: given, facts: undefined };
  return { permit: await permitByFacts(given, facts, gateway), facts };
}

async function whoCouldApprove(
  permit: Permit,
  origin: Origin | undefined,
  gateway: GatewayContext,
) {
  const approvers = await approversOf(permit, origin, gateway);
  const { refused, needs = [] } = approvers;
  if (refused) return { nobody: `${refused.text} ${refused.hint}` };
  const words = approvalWords(permit, approvers, gateway);
  const names = needs.flatMap(({ who = [] }) => who.map((approver) => approver.name));
  const could =
    names.length > 0 ? ` Now ${joined([...new Set(names)], "or", maxNamed)} could.` : "";
  return { approval: words && `${words}${could}` };
}

function lostBy({ command, input, facts }: Considered, targets: readonly Target[], now: number) {
  const at = facts && chosenSnapshot(facts)?.at;
  const lost = at === undefined ? undefined : { since: at, forMs: Math.max(0, now - at) };
  const vms = facts?.vms ?? [];
  const [only, ...others] = targets;
  // A rollout's form says how many VMs it interrupts.
  if (!only || others.length > 0) return [];
  return command.risk?.({ target: only, input, vms, lost }) ?? [];
}

async function readEarlier(
  command: ChangeCommand,
  targets: readonly Target[],
  { store }: GatewayContext,
) {
  const [only, ...others] = targets;
  const ofOne = only && others.length === 0 ? { targetId: only.id || only.name } : {};
  const own = await store.getMany(await store.recentIds(ofOne, mostRead));
  const runs = earlierRuns(own, command, targets);
  if (runs.tookMs.length > 0 || !("targetId" in ofOne)) return runs;
  return earlierRuns(await store.getMany(await store.recentIds({}, mostRead)), command, targets);
}
