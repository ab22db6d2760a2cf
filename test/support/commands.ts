import * as z from "zod";
import type { PolicyTerms } from "../../src/config/policy-section.ts";
import { commandsWith } from "../../src/features/define-feature.ts";
import { policyTerms } from "../../src/features/index.ts";
import { sentence } from "../../src/messages/card.ts";
import { md, name as quoted } from "../../src/messages/markdown.ts";
import { operationsOf } from "../../src/core/permit/approval-rule.ts";
import {
  defineCommand,
  fileFlag,
  rest,
  target,
  targetOrSeveral,
} from "../../src/registry/define.ts";
import type { EmergencyWords } from "../../src/registry/emergency.ts";

/**
 * What the core asks of commands that features bring: that one takes a snapshot, which alone proves it; that one replaces data, behind an
 * approval and a safety snapshot; that one shows a secret, and may wait as a request for approval; that
 * one ends a freeze. Tests of the core go by these, so that they hold whichever features there are.
 */
export const snapshot = defineCommand({
  on: "vm",
  name: "vm snapshot",
  summary: "Take a snapshot of a VM",
  example: "/vm snapshot db-1 before-upgrade",
  class: "change",
  protect: false,
  attestAfter: false,
  snapshot: "takes",
  args: z.object({
    vm: targetOrSeveral("vm"),
    name: z.string().min(1).max(100).optional(),
  }),
  say: { verb: "Snapshot", doing: "Taking a snapshot of", done: "Took a snapshot of" },
  effect: { provenBy: () => true, wanted: () => false },
  perform: (vm, { name = "unnamed" }, { compute }) => compute.vms.snapshot(vm.id, name),
});

export const restore = defineCommand({
  on: "vm",
  name: "vm restore",
  aliases: ["rollback"],
  summary: "Restore a VM from a snapshot; later data is lost",
  example: "/vm restore db-1 snap-42",
  class: "destroy",
  helpsInError: "restore a snapshot",
  protect: true,
  attestAfter: true,
  snapshot: "restores",
  args: z.object({
    vm: target("vm"),
    snapshot: z.string().meta({ picker: "snapshot" }),
    noSafety: z.boolean().optional().meta({ isFlag: true }),
  }),
  say: {
    verb: "Restore",
    doing: "Restoring",
    done: "Restored",
    detail: ({ snapshot: id }, labels) => `from ${labels["snapshot"] ?? String(id)}`,
  },
  risk: ({ target: vm, input, lost }) => [
    md`⚠️ *Data of ${vm.name} is replaced*${lost ? md` since ${lost.since}` : ""}${input["noSafety"] === true ? ", for good" : ""}.`,
  ],
  dialog: {},
  safetyFirst: ({ noSafety }) => noSafety !== true,
  effect: { wanted: (now) => now?.status === "RUNNING", needsMark: true },
  perform: (vm, { snapshot: id }, { compute }) => compute.vms.restore(vm.id, id),
  addToResult: (_before, _after, { snapshot: id }) => md`The snapshot's ID is ${quoted(id)}.`,
});

const opening = {
  name: "vm console",
  aliases: ["ssh"],
  suggestFor: { logs: "the compute service returns none", log: "the compute service returns none" },
  summary: "Open a console on a VM, only for you",
  example: "/vm console web-1",
  class: "secret",
  args: z.object({
    vm: target("vm"),
    insist: z.string().min(3).max(300).optional().meta({ isFlag: true }),
  }),
} as const;

export const console = defineCommand({
  ...opening,
  onCard: "Console",
  helpsInError: "open a console",
  asRequest: defineCommand({
    ...opening,
    on: "vm",
    protect: false,
    attestAfter: false,
    openedBy: "Open console",
    say: { verb: "Console", doing: "Opening a console on", done: "Opened a console on" },
    effect: { wanted: () => false },
    perform: () => Promise.reject(new Error("no worker opens it")),
  }),
  answer: async () => sentence(md`A console.`),
});

export const freeze = defineCommand({
  name: "gatehouse freeze",
  summary: "Stop every change that was not sent yet",
  example: "/gatehouse freeze storage is failing",
  class: "administer",
  approversToo: true,
  args: z.object({ reason: rest(300, "why").optional() }),
  answer: async () => sentence(md`Frozen.`),
});

export const thaw = defineCommand({
  name: "gatehouse thaw",
  summary: "Allow changes again",
  example: "/gatehouse thaw",
  class: "administer",
  roles: ["ends-freeze"],
  args: z.object({}),
  answer: async () => sentence(md`Allowed.`),
});

/** What lets changes skip approvals. */
export const emergency: EmergencyWords = {
  warning: md`This skips approval.`,
  reasonHint: "For the review.",
  help: md`In an emergency: --break-glass.`,
  instead: md`In an emergency: --break-glass.`,
  onCard: (who) => md`${who} in an emergency: --break-glass.`,
};

export const attest = defineCommand({
  name: "vm attest",
  aliases: ["verify"],
  summary: "Verify a VM's attestation evidence",
  example: "/vm attest web-1",
  class: "read",
  onCard: "Attest",
  helpsInError: "check its attestation",
  roles: ["shows-evidence"],
  args: z.object({
    vm: targetOrSeveral("vm"),
    raw: fileFlag("the report"),
    evidence: fileFlag("the evidence"),
  }),
  answer: async () => sentence(md`Verified.`),
});

export const pins = defineCommand({
  name: "gatehouse pins",
  summary: "Show what VMs are pinned to",
  example: "/gatehouse pins",
  class: "read",
  args: z.object({}),
  answer: async () => sentence(md`Pinned.`),
});

const pin = {
  on: "vm",
  class: "change",
  protect: false,
  minApprovals: 1,
  attestAfter: false,
  args: z.object({ vm: target("vm"), why: rest(300, "why").optional() }),
  effect: { wanted: () => false },
  keeps: {
    prepare: async () => ({ kind: "ready", values: "aa".repeat(48), facts: [] }) as const,
    pin: (values: string) => values,
  },
  perform: () => Promise.reject(new Error("a pin is kept, not sent")),
} as const;

export const pinsPropose = defineCommand({
  ...pin,
  name: "gatehouse pins propose",
  summary: "Propose a VM's measurements as its pin",
  example: "/gatehouse pins propose db-1 new image",
  say: { verb: "Pin", doing: "Pinning", done: "Pinned" },
});

export const pinsDrop = defineCommand({
  ...pin,
  name: "gatehouse pins drop",
  summary: "Drop a VM's pin",
  example: "/gatehouse pins drop db-1",
  say: { verb: "Unpin", doing: "Unpinning", done: "Unpinned" },
});

/** Those of the core, and these. */
export const commands = commandsWith([
  {
    name: "stand-ins",
    commands: [snapshot, restore, console, freeze, thaw, attest, pins, pinsPropose, pinsDrop],
  },
]);

/** What gatehouse.yml can speak about in these tests. */
export const terms: PolicyTerms = { ...policyTerms, operations: operationsOf(commands) };
