import type { Message } from "../../src/messages/message.ts";

/** Hears what a probe tells, once per ID, as the announcer does. */
export function createTeller() {
  const said = new Map<string, Message>();
  return {
    said,
    texts: () => [...said.values()].map(({ text }) => text),
    follow: async () => undefined,
    alarms: {
      placeOf: () => "access",
      async tell(id: string, message: Message) {
        if (!said.has(id)) said.set(id, message);
        return "C02STATUS";
      },
    },
  };
}
