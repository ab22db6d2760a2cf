import type { Message } from "../../src/messages/blocks.ts";

/** Hears what a probe tells, once per ID, as the announcer does. */
export function createTeller() {
  const said = new Map<string, Message>();
  /** The alarms that wait, and those that were withdrawn. */
  const waiting = new Map<string, Message>();
  const withdrawn = new Set<string>();
  async function hasten(id: string) {
    const message = waiting.get(id);
    if (message) said.set(id, message);
    waiting.delete(id);
  }
  return {
    said,
    texts: () => [...said.values()].map(({ text }) => text),
    waiting: () => [...waiting.values()].map(({ text }) => text),
    /** All that waits becomes due. */
    async timePasses() {
      for (const id of waiting.keys()) await hasten(id);
    },
    follow: async () => undefined,
    owed: {
      hasten,
      isWithdrawn: async (id: string) => withdrawn.has(id),
      async withdraw(id: string) {
        if (waiting.delete(id)) withdrawn.add(id);
      },
    },
    alarms: {
      placeOf: () => "access",
      async sendAlarm(id: string, message: Message, _place?: string, { inMs = 0 } = {}) {
        const list = inMs > 0 ? waiting : said;
        if (![said, waiting].some((some) => some.has(id))) list.set(id, message);
        return "C02STATUS";
      },
    },
  };
}
