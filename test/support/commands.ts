import * as z from "zod";
import type { PolicyTerms } from "../../src/config/policy-section.ts";
import { commandsWith } from "../../src/features/define-feature.ts";
import { policyTerms } from "../../src/features/index.ts";
import { md, name as quoted, sentence } from "../../src/messages/message.ts";
import { operationsOf } from "../../src/policy/approval-rule.ts";
import { defineCommand, target, targetOrSeveral } from "../../src/registry/define.ts";
import { rollingArgs } from "../../src/registry/invocation.ts";

/**
 * What the core asks of commands that features bring: that one takes a snapshot, which alone proves it; that one replaces data, behind an
 * approval and a safety snapshot; that one shows a secret, and may wait as a request for approval. Tests of the core go by these, so that they hold whichever features there are.
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
    ...rollingArgs,
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
  helpsInError: true,
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
  tell: (_before, _after, { snapshot: id }) => md`The snapshot's ID is ${quoted(id)}.`,
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
  helpsInError: true,
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

/** Those of the core, and these. */
export const commands = commandsWith([
  { name: "stand-ins", commands: [snapshot, restore, console] },
]);

/** What gatehouse.yml can speak about in these tests. */
export const terms: PolicyTerms = { ...policyTerms, operations: operationsOf(commands) };
