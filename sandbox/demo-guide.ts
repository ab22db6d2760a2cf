import type { Guide } from "./page/around.ts";

/** What the demo's first screen says. What each may do is the policy in `demo-world.ts`, in words. */
export const demoGuide: Guide = {
  about:
    "Two teams share this Gatehouse: payments in #ops, search in #search. What belongs to neither, everyone sees.",
  people: [
    { who: "olivia", may: "is on call for payments: runs its VMs. What destroys, she asks for." },
    {
      who: "amir",
      may: "leads payments: approves what others ask for, and runs nothing himself.",
    },
    { who: "mia", may: "is on call for search. For her, VMs of payments don't exist." },
    { who: "noor", may: "leads search: approves what Mia asks for." },
    { who: "ben", may: "is in neither team: sees what belongs to neither." },
    { who: "vera", may: "looks at everything and changes nothing." },
    { who: "ada", may: "administers: freezes, approves, and breaks the glass." },
    { who: "gina", may: "is a guest: nothing is done for her." },
  ],
  tries: [
    { as: "olivia", channel: "ops", text: "/vm restart web-2", why: "A change, told to its end" },
    { as: "vera", channel: "ops", text: "/vm stop web-2", why: "A refusal, and its reason" },
    {
      as: "olivia",
      channel: "ops",
      text: "/vm attest ledger-*",
      why: "Evidence that Gatehouse checks itself: one of four is as it should be",
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
      why: "A migration went wrong: she asks to go back. The form wants the VM's name and a reason.",
    },
    { be: "amir", why: "Amir's phone buzzes. Become Amir, read what is lost, and approve." },
    { weather: true, why: "Now the promise: switch “Lost answers” on, and look at web-2 …" },
    {
      as: "olivia",
      channel: "ops",
      text: "/vm restart web-2",
      why: "… while Olivia restarts it. No answer comes, yet it restarts once, and that is told.",
    },
    {
      as: "ada",
      channel: "ops",
      text: "/gatehouse audit",
      why: "Ada reads who did what, and why.",
    },
    {
      as: "mia",
      channel: "status",
      text: "/vm restart index-1",
      why: "The other team: search wants its lead's yes. Mia asks here, and Noor decides in #search, or at Home.",
    },
    {
      as: "mia",
      channel: "search",
      text: "/vm show web-2",
      why: "Mia looks for a VM of payments. There is none, for her.",
    },
  ],
};
