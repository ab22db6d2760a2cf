import type { Guide } from "../sandbox/page/index.ts";

/** What the demo's first screen says. What each may do is the policy in `demo-world.ts`, in words. */
export const demoGuide: Guide = {
  subtitle: "Gatehouse in a sandbox: nothing here is real",
  about:
    "Two teams share this Gatehouse: payments in #ops, search in #search. Everyone sees what belongs to neither.",
  people: [
    {
      who: "olivia",
      may: "is on call for payments. Destructive changes need approval.",
    },
    {
      who: "amir",
      may: "leads payments: approves requests, and runs nothing himself.",
    },
    { who: "mia", may: "is on call for search. For her, the VMs of payments don't exist." },
    { who: "noor", may: "leads search: approves what Mia requests." },
    { who: "ben", may: "is in neither team: sees only what belongs to neither." },
    { who: "vera", may: "sees everything and changes nothing." },
    { who: "ada", may: "administers: freezes changes, approves, and uses break-glass." },
    { who: "gina", may: "is a guest: Gatehouse does nothing for her." },
  ],
  tries: [
    {
      as: "olivia",
      channel: "ops",
      text: "/vm restart web-2",
      why: "A change, followed to its result",
    },
    { as: "vera", channel: "ops", text: "/vm stop web-2", why: "A refusal, with its reason" },
    {
      as: "olivia",
      channel: "ops",
      text: "/vm attest ledger-*",
      why: "Evidence that Gatehouse checks itself: one of four VMs passes",
    },
  ],
  story: [
    {
      as: "olivia",
      channel: "ops",
      text: "/vm snapshot db-1 nightly",
      why: "Olivia takes a snapshot of the database.",
    },
    {
      as: "olivia",
      channel: "ops",
      text: "/vm restore db-1 nightly",
      why: "A migration went wrong, so she asks to go back. The form wants the VM's name and a reason.",
    },
    {
      be: "amir",
      channel: "ops",
      why: "Amir's phone buzzes. Switch to Amir, read what would be lost, and approve.",
    },
    { weather: true, why: "Now the promise: turn on “Lost answers”, and watch web-2 …" },
    {
      as: "olivia",
      channel: "ops",
      text: "/vm restart web-2",
      why: "… while Olivia restarts it. The answer is lost, yet it restarts once, and Gatehouse says so.",
    },
    {
      as: "ada",
      channel: "ops",
      text: "/gatehouse audit",
      why: "Turn “Lost answers” off. Ada reads who did what, and why.",
    },
    {
      weather: true,
      why: "At 3 a.m. an alert speaks first: turn it on, and press Restart… on its message in #ops.",
    },
    {
      weather: true,
      why: "Programs propose, people run: turn on “A deploy job proposes” or “An agent proposes”, and press Run on the card in #ops.",
    },
    {
      as: "vera",
      channel: "ops",
      text: "/vm restart payments/web-1",
      why: "Vera may only look. The refusal has a button that asks @oncall; Olivia runs it, and Vera is told.",
    },
    {
      as: "olivia",
      channel: "ops",
      text: "/gatehouse night",
      why: "The night as one page: each alert and each change, who did it, and how it ended.",
    },
    {
      as: "mia",
      channel: "status",
      text: "/vm restart index-1",
      why: "The other team: a restart in search needs its lead's approval. Mia asks here; Noor decides in #search or on her Home tab.",
    },
    {
      as: "mia",
      channel: "search",
      text: "/vm show web-2",
      why: "Mia looks for a VM of payments. For her, there is none.",
    },
  ],
};
