import { help } from "../../../src/commands/gatehouse/help.ts";
import { stop } from "../../../src/commands/vm/stop.ts";
import { emergencyWordsOf } from "../../../src/registry/emergency.ts";
import { emergencyWords } from "../../../src/features/break-glass/emergency-words.ts";
import { reviewSigned } from "../../../src/features/break-glass/sign-review.ts";
import { reviewNotice, tellEnd } from "../../../src/features/break-glass/tell-audit.ts";
import type { Message } from "../../../src/messages/blocks.ts";
import { formOfOne } from "../../../src/talk/form-view.ts";
import { type About, type Example, at } from "../example.ts";
import { answerOf, readingOf } from "../reading.ts";
import { done, vmTarget } from "../requests.ts";

const review = ({ vm, why }: About) => ({
  request: "r-7fk3m9q2xw",
  command: "vm stop",
  target: vm,
  by: "U0ADA",
  reason: why,
});

async function emergencyEnd(about: About): Promise<Message> {
  const told: Message[] = [];
  const request = done(about, { breakGlass: true });
  await tellEnd(request, stop, async (_id, message) => void told.push(message));
  const [message] = told;
  if (!message) throw new Error("nothing was told");
  return message;
}

const explained = (may: boolean) => (about: About) => {
  const reading = readingOf(about, [help, stop], {
    services: new Map([emergencyWordsOf.providedBy(emergencyWords)]),
  });
  const breakGlass = may ? ["*"] : [];
  const policy = { ...reading.policy, access: { ...reading.policy.access, breakGlass } };
  return answerOf(help, { command: "break-glass" }, { ...reading, policy });
};

export const examples: readonly Example[] = [
  { name: "/gatehouse help break-glass, to who may use it", make: explained(true) },
  { name: "/gatehouse help break-glass, to who may not", make: explained(false) },
  {
    name: "the form of a break-glass",
    make: ({ vm, why }) =>
      formOfOne({
        command: stop,
        facts: { target: vmTarget(vm), seen: undefined, vms: [], snapshots: [], input: {} },
        meta: {
          command: "vm stop",
          targetId: vmTarget(vm).id,
          channelId: "C01OPS",
          breakGlass: why.slice(0, 300),
        },
        emergency: emergencyWords,
        now: at,
      }),
  },
  {
    name: "a broken glass",
    reader: "administrator",
    make: (about) => reviewNotice(review(about), `Stop ${about.vm} (payments)`, about.who),
    push: "Break-glass by olivia, without approval: Stop db-1 (payments): “bad migration”",
  },
  {
    name: "what came of a break-glass",
    reader: "administrator",
    make: emergencyEnd,
    push: "✅ Break-glass by olivia: Stopped db-1 in 34 s.",
  },
  {
    name: "the signed review of a break-glass",
    reader: "who broke the glass",
    make: (about) => reviewSigned({ ...review(about), checked: "it was" }, about.who),
    push: "olivia signed the review of a break-glass: vm stop of db-1",
  },
];
