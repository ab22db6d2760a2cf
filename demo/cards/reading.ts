import type { ReadContext } from "../../src/commands/context.ts";
import { emptyPolicy } from "../../src/config/policy-file.ts";
import { createFactsAbout } from "../../src/core/facts/facts-about.ts";
import type { StoredRequest } from "../../src/core/request/stored-request.ts";
import { targetOf } from "../../src/core/submit/resolve-targets.ts";
import type { Vm } from "../../src/fleet/compute/compute.ts";
import type { Inventory, KnownProject, KnownVm } from "../../src/fleet/inventory/inventory.ts";
import { silentLog } from "../../src/log/log.ts";
import type { Message } from "../../src/messages/blocks.ts";
import type { Command } from "../../src/registry/define.ts";
import type { Input, Person } from "../../src/registry/invocation.ts";
import { type About, at } from "./example.ts";
import { each, vmTarget } from "./requests.ts";

type Known = Partial<ReadContext> & {
  /** What the journal holds, the newest first. */
  requests?: readonly StoredRequest[];
};

/** Some members of a context, for code that looks at no others. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a missing member fails the example
export const someOf = <T>(members: Partial<T>): T => members as T;

const specs = { cpu: 4, memory: 16, disk: 100 };

/** The VMs that examples read: that of the message, and some beside it. */
export const vmsOf = ({ vm }: About): readonly KnownVm[] =>
  (
    [
      [vm, "RUNNING"],
      ["web-2", "ERROR"],
      ["web-1", "RUNNING"],
      ["cache-1", "STOPPED"],
    ] as const
  ).map(([name, status]) => {
    const { id, projectId } = vmTarget(name);
    const createdAt = "2026-03-02T09:30:00Z";
    const known = { id, name, status, projectId, projectName: "payments", createdAt };
    return { ...known, region: "eu-1", specs };
  });

const payments: KnownProject = {
  id: "prj-payments",
  name: "payments",
  type: "TEE_VM",
  status: "ACTIVE",
  region: "eu-1",
};

function inventoryOf(about: About): Inventory {
  const vms = vmsOf(about);
  const projects = [
    payments,
    { ...payments, id: "prj-web", name: "storefront", type: "CONTAINER" },
  ];
  const match = <T extends { id: string; name: string }>(all: readonly T[], words: string) => {
    const found = all.find(({ id, name }) => id === words || name === words);
    return found ? { record: found } : { unknown: [] };
  };
  const inventory: Inventory = someOf<Inventory>({
    findVm: async (words) => match(vms, words),
    findProject: async (words) => match(projects, words),
    upToDate: async () => undefined,
    vms: async () => vms,
    projects: async () => projects,
    note: async () => undefined,
    state: async () => ({
      refreshedAt: at - 20_000,
      version: 1,
      stale: false,
      vms: vms.length,
      projects: projects.length,
      unread: [],
    }),
    seenIn: () => inventory,
  });
  return inventory;
}

const samples = (from: number, step: number) =>
  each(12, (n) => ({
    timestamp: new Date(at - (12 - n) * 300_000).toISOString(),
    value: from + ((n * step) % 60),
  }));

function computeOf(about: About): ReadContext["compute"] {
  const vms = vmsOf(about).map(({ projectName: _name, ...vm }): Vm => {
    const attestation = { enabled: true, measurement: "ab".repeat(48) };
    return { ...vm, ipAddress: "10.0.4.7", updatedAt: "2026-11-20T01:40:00Z", attestation };
  });
  return someOf<ReadContext["compute"]>({
    vms: someOf<ReadContext["compute"]["vms"]>({
      get: async (id) => vms.find((vm) => vm.id === id) ?? Promise.reject(new Error(`no VM ${id}`)),
      metrics: async () => ({
        cpuUsage: samples(20, 17),
        memoryUsage: samples(30, 5),
        diskUsage: 42,
      }),
    }),
    projects: someOf<ReadContext["compute"]["projects"]>({
      get: async () => ({ ...payments, createdAt: "2026-03-02T09:30:00Z", specs }),
      vms: async () => vms,
    }),
  });
}

function journalOf(requests: readonly StoredRequest[]): ReadContext["journal"] {
  const ids = requests.map(({ record }) => record.id);
  return someOf<ReadContext["journal"]>({
    get: async (id) => requests.find(({ record }) => record.id === id),
    getMany: async (wanted) => requests.filter(({ record }) => wanted.includes(record.id)),
    recentIds: async ({ requesterId, targetId, open }) =>
      requests
        .filter(({ final }) => open !== true || !final)
        .filter(({ record }) => requesterId === undefined || record.requester.id === requesterId)
        .filter(({ record }) => targetId === undefined || record.target.id === targetId)
        .map(({ record }) => record.id),
    openIds: async () => ids,
    openCount: async () => ids.length,
    history: async () => [
      { at, state: "draft", why: "requested", actor: "U0OLIVIA" },
      { at: at + 9_000, state: "authorized", why: "approved", actor: "U0AMIR" },
      { at: at + 34_000, state: "done", why: "RUNNING was read" },
    ],
    freezeState: async () => undefined,
    freeze: async () => false,
    thaw: async () => ({ kind: "not-frozen" }),
    note: async () => "",
    now: async () => at,
  });
}

export const olivia = ({ who }: About): Person => ({
  id: "U0OLIVIA",
  teamId: "T0OURS",
  name: who,
  kind: "member",
  groups: [],
  timeZone: "Europe/Paris",
});

/** Everything that a command reads from, without anything to start. */
export function readingOf(
  about: About,
  commands: readonly Command[],
  { requests = [], ...over }: Known = {},
): ReadContext {
  const person = olivia(about);
  const everyone = ["*"];
  const policy = {
    ...emptyPolicy(),
    access: {
      ...emptyPolicy().access,
      view: everyone,
      operate: everyone,
      approve: everyone,
      administer: everyone,
    },
  };
  const rules = { policy, ourTeamId: person.teamId };
  const inventory = inventoryOf(about);
  const names = new Map([
    ["U0OLIVIA", about.who],
    ["U0AMIR", "amir"],
    ["U0ADA", "ada"],
  ]);
  return someOf<ReadContext>({
    ...rules,
    person,
    commands,
    inventory,
    channelId: "C01OPS",
    isShared: false,
    takesSeveral: true,
    services: new Map(),
    compute: computeOf(about),
    journal: journalOf(requests),
    drift: {
      failing: async () => new Map([["vm-payments-web-2", "the measurement matches no pin"]]),
      failure: async () => undefined,
      unverifiable: async () => new Map(),
      verifiedAt: async () => at - 3_600_000,
    },
    nameOf: (id) => names.get(id),
    learnNames: async () => undefined,
    sees: async () => true,
    seesAll: async () => true,
    factsAbout: createFactsAbout({
      appraiser: { pinsOf: async () => ({ from: "nowhere", values: [] }) },
      statuses: {
        readRecords: async () =>
          new Map([
            [
              vmTarget("web-2").projectId,
              { [vmTarget("web-2").id]: ["ERROR", at - 600_000, "RUNNING", at - 90_000_000] },
            ],
          ]),
      },
      commands,
      sources: () => [],
      log: silentLog(),
      now: () => at,
    }),
    async resolve(kind, words) {
      const match = await (kind === "vm" ? inventory.findVm(words) : inventory.findProject(words));
      if (!("record" in match)) throw new Error(`no ${kind} ${words}`);
      return targetOf(match.record);
    },
    mayRun: () => true,
    linkTo: async () => undefined,
    offersAtRefusal: () => [],
    status: async () => [],
    findChannel: async (id) => ({ kind: "found", id }),
    post: async () => undefined,
    announceIn: async () => undefined,
    now: () => at,
    ...over,
  });
}

/** What a command answers to these arguments. */
export async function answerOf(
  command: Command,
  input: Input,
  reading: ReadContext,
): Promise<Message> {
  if (command.kind !== "read") throw new Error(`${command.name} answers nothing by itself`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema parsed them
  const answer = await command.answer(command.args.parse(input) as never, reading as never);
  return "message" in answer ? answer.message : answer;
}
