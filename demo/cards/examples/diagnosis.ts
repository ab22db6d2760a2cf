import { diagnosis } from "../../../src/commands/diagnosis.ts";
import { why } from "../../../src/commands/gatehouse/why.ts";
import { restart } from "../../../src/commands/vm/restart.ts";
import { show } from "../../../src/commands/vm/show.ts";
import { diagnose } from "../../../src/features/diagnosis/diagnose.ts";
import type { About, Example } from "../example.ts";
import { answerOf, readingOf } from "../reading.ts";
import { done, vmTarget } from "../requests.ts";

const answers = (vm: (about: About) => string) => (about: About) => {
  const target = vmTarget(vm(about));
  const services = new Map([diagnosis.providedBy(diagnose)]);
  const requests = [done({ ...about, vm: target.name }, { command: "vm restart" })];
  const reading = readingOf(about, [why, show, restart], { services, requests });
  return answerOf(why, { request: target.name }, reading);
};

export const examples: readonly Example[] = [
  { name: "/gatehouse why, of a VM that is well", make: answers(({ vm }) => vm) },
  { name: "/gatehouse why, of a VM in trouble", make: answers(() => "web-2") },
];
