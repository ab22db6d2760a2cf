import { addressMessage } from "../../../src/features/consoles/open-console.ts";
import { start } from "../../../src/commands/vm/start.ts";
import { console } from "../../../src/features/consoles/console.ts";
import { consoleOpened } from "../../../src/features/consoles/open-console.ts";
import * as appraisals from "../appraisals.ts";
import { type About, type Example, at } from "../example.ts";
import { answerOf, readingOf, someOf } from "../reading.ts";

const answers =
  (of: (about: About) => string, more: object = {}) =>
  (about: About) => {
    const reading = readingOf(about, [console, start]);
    const appraisal = "insist" in more ? appraisals.failed : appraisals.verified;
    const appraiser = someOf<typeof reading.appraiser>({
      attest: async () =>
        someOf<Awaited<ReturnType<typeof reading.appraiser.attest>>>({ appraisal }),
    });
    return answerOf(console, { vm: of(about), ...more }, { ...reading, appraiser });
  };

export const examples: readonly Example[] = [
  { name: "/vm console", make: answers(({ vm }) => vm) },
  { name: "/vm console, insisted on", make: answers(({ vm }) => vm, { insist: "the pin is old" }) },
  { name: "/vm console, of a stopped VM", make: answers(() => "cache-1") },
  {
    name: "a console",
    reader: "channel",
    make: ({ vm, who }) => consoleOpened(vm, who, at),
    push: "olivia opened a console on db-1",
  },
  {
    name: "the address of a console",
    make: ({ vm }) => addressMessage(vm, "wss://console.example/s/8f2k?token=sample", at),
  },
];
