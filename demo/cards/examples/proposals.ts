import { restart } from "../../../src/commands/vm/restart.ts";
import {
  renderProposal,
  renderReminder,
  renderResultForAsker,
} from "../../../src/features/proposals/render-proposal.ts";
import type { Proposer, StoredProposal } from "../../../src/features/proposals/proposals.ts";
import { type About, type Example, at } from "../example.ts";
import { done, freezeBy, vmTarget } from "../requests.ts";

const asker = ({ who }: About): Proposer => ({
  asker: { id: "U0VERA", teamId: "T0OURS", name: who },
  allowed: ["S01ONCALL"],
  askedIn: "C01OPS",
});

const proposed = (
  { vm, why }: About,
  by: Proposer,
  over: Partial<StoredProposal> = {},
): StoredProposal => ({
  record: {
    id: "p-6ad1c0ffee112233",
    by,
    words: `vm restart ${vm}`,
    reason: why,
    command: "vm restart",
    input: { vms: [vmTarget(vm).id] },
    target: vmTarget(vm),
    labels: {},
    risk: [`⚠️ *This interrupts what runs on ${vm}.*`],
    channelId: "C01OPS",
    expiresAt: at + 900_000,
  },
  state: "open",
  revision: 1,
  createdAt: at,
  takenAt: at,
  delivered: { marks: {} } as never,
  closed: {} as never,
  ...over,
});

const beside: Parameters<typeof renderProposal>[2] = {
  policy: { confirm: [], services: {} },
  frozen: undefined,
  runIn: undefined,
  request: undefined,
  link: undefined,
};

const service = { service: "deploy" };

export const examples: readonly Example[] = [
  {
    name: "a proposal of a service",
    reader: "those whom `notify` names",
    make: (about) => renderProposal(proposed(about, service), restart, beside),
    push: "deploy proposes: Restart db-1 (payments): “bad migration”",
  },
  {
    name: "a change that somebody asks others for",
    reader: "those who may run it",
    make: (about) => renderProposal(proposed(about, asker(about)), restart, beside),
    push: "olivia asks: Restart db-1 (payments): “bad migration”",
  },
  {
    name: "a proposal during a freeze",
    make: (about) =>
      renderProposal(proposed(about, service), restart, {
        ...beside,
        frozen: freezeBy(about),
      }),
  },
  {
    name: "a proposal that can't be run in its channel",
    make: (about) =>
      renderProposal(proposed(about, service), restart, { ...beside, runIn: ["C02STATUS"] }),
  },
  {
    name: "a proposal that was run",
    make: (about) =>
      renderProposal(proposed(about, service, { state: "running" }), restart, {
        ...beside,
        request: done(about, { command: "vm restart" }),
      }),
  },
  {
    name: "a proposal that was dismissed",
    make: (about) => {
      const dismissal = { id: "U0AMIR", name: about.who, reason: about.why };
      return renderProposal(
        proposed(about, service, { state: "dismissed", dismissal }),
        restart,
        beside,
      );
    },
  },
  {
    name: "a proposal that expired",
    make: (about) =>
      renderProposal(proposed(about, service, { state: "expired" }), restart, beside),
  },
  {
    name: "what came of what somebody asked for",
    reader: "asker",
    make: (about) => {
      const request = done(about, { command: "vm restart" });
      const told = renderResultForAsker(
        proposed(about, asker(about), { state: "running" }),
        restart,
        {
          request,
          isBelowCard: false,
        } as never,
      );
      if (!told) throw new Error("nothing to tell");
      return told;
    },
    push: "✅ Restarted db-1 in 34 s. (olivia)",
  },
  {
    name: "a reminder of a change that somebody asked for",
    make: (about) => renderReminder(proposed(about, asker(about)), restart),
  },
];
