import { randomBytes } from "node:crypto";
import * as z from "zod";
import { type Appraisal, gateRefusal } from "../../attestation/appraise.ts";
import { UserError } from "../../errors.ts";
import { card } from "../../messages/card.ts";
import { md, name } from "../../messages/markdown.ts";
import { isListed } from "../../core/permit/permit.ts";
import { type Compute, statusFacts } from "../../fleet/compute/compute.ts";
import {
  type Target,
  target,
  defineCommand,
  dottedName,
  runButton,
} from "../../registry/define.ts";
import { commandWithRole } from "../../registry/command-roles.ts";
import { withTarget } from "../../registry/invocation.ts";
import type { ReadContext } from "../../commands/context.ts";

/** How long the button works (ms). Later, the measurement or the policy could be different. */
const offeredForMs = 60_000;

const words = {
  name: "vm console",
  aliases: ["ssh"],
  suggestFor: { logs: "the compute service returns none", log: "the compute service returns none" },
  summary: "Open a console on a VM, only for you",
  example: "/vm console web-1",
  class: "secret",
  args: z.object({
    vm: target("vm").describe("the VM to open it on"),
    insist: z.string().min(3).max(300).optional().meta({
      isFlag: true,
      description: "for administrators: why to open it although the VM isn't verified",
    }),
  }),
} as const;

const asRequest = defineCommand({
  ...words,
  on: "vm",
  protect: false,
  attestAfter: false,
  openedBy: "Open console",
  say: { verb: "Console", doing: "Opening a console on", done: "Opened a console on" },
  risk: ({ target: vm }) => [md`⚠️ *Anyone with this console controls ${vm.name}.*`],
  // Only the service's answer proves that a console opened. If it is lost, a person must tell.
  effect: { wanted: () => false },
  perform: () => Promise.reject(new Error("a console is opened by its requester, not by a worker")),
});

export const console = defineCommand({
  ...words,
  onCard: "Console",
  helpsInError: "open a console",
  asRequest,
  async answer({ vm: called, insist }, reading: ReadContext) {
    const { appraiser, policy, ourTeamId, resolve, now, person, approved, commands } = reading;
    const vm = await resolve("vm", called);
    if (await isStoppedNow(vm, reading)) return stopped(vm, reading);
    const refusal = refusalOf((await appraiser.attest(vm)).appraisal);
    if (refusal !== undefined && insist === undefined) {
      const reader = commandWithRole(commands, "shows-evidence");
      const look = reader ? `\`/${reader.name} ${vm.name}\` shows what was checked. ` : "";
      throw new UserError(
        `No console on ${vm.name}: ${refusal}. It may not run what you expect.`,
        `${look}An administrator can insist: \`/vm console ${vm.name} --insist "why"\`.`,
      );
    }
    if (refusal !== undefined && !isListed(person, "administer", { policy, ourTeamId })) {
      throw new UserError(
        "Only an administrator can insist.",
        "They are listed under `access.administer` in gatehouse.yml.",
      );
    }
    const value = JSON.stringify({
      vm: vm.id,
      for: person.id,
      until: now() + offeredForMs,
      once: randomBytes(9).toString("base64url"),
      ...(approved === undefined ? {} : { request: approved }),
      ...(refusal === undefined ? {} : { insist }),
    });
    const title = md`Anyone with the address of a console on ${name(vm.name)} controls the VM. It is shown only to you, once, for a short time, and the channel is told that you opened it.`;
    return card({
      title,
      meta: [
        refusal !== undefined &&
          md`⚠️ It isn't verified: ${refusal}. Your reason will be recorded.`,
      ],
      ways: [
        {
          label: "Open console",
          about: `on ${vm.name}`,
          action: "console:open",
          value,
          style: "danger",
        },
      ],
    });
  },
});

/** Reads a VM that seems stopped once more, because the inventory may be a minute old. */
async function isStoppedNow(
  { id, status }: Target,
  { compute }: { compute: Compute },
): Promise<boolean> {
  const isStopped = (read: string) => statusFacts(read).isStopped;
  return isStopped(status) && isStopped((await compute.vms.get(id)).status);
}

/** Says that a stopped VM has no console, and offers to start it to whoever may. */
function stopped(vm: Target, { commands, mayRun }: ReadContext) {
  const start = commands.find((command) => dottedName(command) === "vm.start");
  const offer = start && mayRun(start, [vm]);
  return card({
    title: md`${name(vm.name)} is stopped. A console needs a running VM.`,
    ways: offer ? [runButton("Start", dottedName(start), withTarget(start, {}, vm), vm.name)] : [],
  });
}

/**
 * Why no console is opened; undefined when it may be. A pinned VM must be verified; any other VM
 * must not fail attestation.
 */
function refusalOf(appraisal: Appraisal): string | undefined {
  const { pins, pinDoubt } = appraisal.measurement;
  const isPinned = pins.length > 0 || pinDoubt !== undefined;
  if (!isPinned && appraisal.verdict !== "failed") return undefined;
  const refusal = gateRefusal(appraisal);
  if (appraisal.verdict !== "failed") return refusal && `it could not be verified (${refusal})`;
  return `its attestation failed (${refusal ?? ""})`;
}
