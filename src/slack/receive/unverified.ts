import type { IncomingMessage } from "node:http";

/**
 * What all requests without a checked signature, whose bodies are still on their way, may take together. Anybody can send such requests, so when there are too
 * many the ones that look least like Slack's make room: of too many the oldest (Slack sends a body at once), of too much the
 * largest (Slack's are small). So a genuine delivery passes a flood as long as it arrives faster than the flood turns over.
 */
export function createUnverified({ most = 1_024, mostBytes = 8 * 1024 * 1024 } = {}) {
  const held = new Map<IncomingMessage, { bytes: number; leave(): void }>();
  let bytes = 0;

  /** It was checked, or it is gone. */
  function end(request: IncomingMessage): void {
    bytes -= held.get(request)?.bytes ?? 0;
    held.delete(request);
  }

  function makeRoom(): void {
    const [oldest] = held.values();
    if (held.size > most) oldest?.leave();
    while (bytes > mostBytes) {
      const largest = [...held.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a));
      largest.leave();
    }
  }

  return {
    /** `crowdedOut`: it must make room; maybe at once. */
    begin(request: IncomingMessage, crowdedOut: () => void): void {
      const leave = () => {
        end(request);
        crowdedOut();
      };
      held.set(request, { bytes: 0, leave });
      makeRoom();
    },
    /** Bytes that have arrived. */
    add(request: IncomingMessage, { length }: Buffer): void {
      const one = held.get(request);
      if (!one) return;
      one.bytes += length;
      bytes += length;
      makeRoom();
    },
    end,
  };
}
