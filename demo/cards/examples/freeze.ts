import { freeze } from "../../../src/features/freeze/freeze.ts";
import { thaw } from "../../../src/features/freeze/thaw.ts";
import { freezeNews } from "../../../src/core/deliver/freeze-news.ts";
import type { Example } from "../example.ts";
import { answerOf, readingOf } from "../reading.ts";
import { freezeBy } from "../requests.ts";

const commands = [freeze, thaw];

export const examples: readonly Example[] = [
  {
    name: "a freeze",
    reader: "channels that wait",
    make: ({ who, why }) => freezeNews({ by: who, reason: why }, thaw, "ada"),
    push: "🧊 olivia froze all changes: bad migration. What was not sent yet won't run; reads still work. ada can allow changes again with /gatehouse thaw.",
  },
  {
    name: "/gatehouse freeze",
    make: (about) => {
      const reading = readingOf(about, commands);
      const journal = { ...reading.journal, freeze: async () => true };
      const stands = freezeBy(about, reading.now());
      return answerOf(
        freeze,
        { reason: about.why.slice(0, 300) },
        { ...reading, journal: { ...journal, freezeState: async () => stands } },
      );
    },
  },
  {
    name: "/gatehouse freeze, during one",
    make: (about) => answerOf(freeze, {}, readingOf(about, commands)),
  },
  {
    name: "/gatehouse freeze, ended since",
    make: (about) => {
      const reading = readingOf(about, commands);
      return answerOf(
        freeze,
        {},
        { ...reading, journal: { ...reading.journal, freeze: async () => true } },
      );
    },
  },
  {
    name: "/gatehouse thaw, of an older freeze",
    make: (about) => {
      const reading = readingOf(about, commands);
      const stands = freezeBy(about, reading.now());
      const newer = async () => ({ kind: "newer", stands }) as const;
      return answerOf(thaw, {}, { ...reading, journal: { ...reading.journal, thaw: newer } });
    },
  },
  {
    name: "/gatehouse thaw",
    make: (about) => {
      const reading = readingOf(about, commands);
      const ended = freezeBy(about, reading.now());
      const thawed = async () => ({ kind: "thawed", ended }) as const;
      return answerOf(thaw, {}, { ...reading, journal: { ...reading.journal, thaw: thawed } });
    },
  },
  {
    name: "/gatehouse thaw, without a freeze",
    make: (about) => answerOf(thaw, {}, readingOf(about, commands)),
  },
];
