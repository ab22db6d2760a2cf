import type { Guide } from "./page/around.ts";

/** What the demo's first screen says. What each may do is the demo's policy in `world.ts`, in words. */
export const demoGuide: Guide = {
  people: [
    { who: "olivia", may: "is on call: runs the VMs. What destroys, she asks for." },
    { who: "amir", may: "leads: approves what others ask for, and runs nothing himself." },
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
  ],
};
