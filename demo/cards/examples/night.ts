import { eventsOf, type EventsSince } from "../../../src/core/events/read-events.ts";
import { night } from "../../../src/features/night/night.ts";
import { fileMessage } from "../../../src/features/night/render-night.ts";
import { md, name } from "../../../src/messages/markdown.ts";
import { showRequest } from "../../../src/registry/command-buttons.ts";
import { type About, type Example, at } from "../example.ts";
import { answerOf, readingOf } from "../reading.ts";

const eventsOfNight = ({ who, vm, why }: About): EventsSince["events"] => [
  {
    id: "1",
    kind: { words: ["alert", "alerts"], weight: "decision" },
    at: at - 7_200_000,
    endedAt: undefined,
    text: md`🔥 *HighCpu* on ${name(vm)} fired`,
    records: ["1-0"],
  },
  {
    id: "2",
    kind: { words: ["change", "changes"], weight: "routine" },
    at: at - 7_000_000,
    endedAt: at - 6_966_000,
    text: md`✅ Restarted ${name(vm)} in 34 s, requested by ${who}: “${why}”`,
    proof: md`Sent 3:12 AM, REBOOTING seen 3:12 AM, RUNNING read 3:12 AM.`,
    button: showRequest("r-7fk3m9q2xw", vm, "Details"),
    records: ["2-0", "3-0"],
  },
];

const answers =
  (events: (about: About) => EventsSince["events"], unread: readonly string[] = []) =>
  (about: About) => {
    const read = { events: events(about), since: at - 43_200_000, isCut: false, unread };
    const services = new Map([
      eventsOf.providedBy({ since: async () => read, of: async () => [] }),
    ]);
    return answerOf(night, {}, readingOf(about, [night], { services }));
  };

export const examples: readonly Example[] = [
  { name: "/gatehouse night", make: answers(eventsOfNight) },
  { name: "/gatehouse night, without an event", make: answers(() => []) },
  { name: "/gatehouse night, read in part", make: answers(() => [], ["alerts"]) },
  {
    name: "/gatehouse night --file",
    make: () => fileMessage(12, { left: 1, limit: undefined, unread: [], isCut: false }),
  },
];
