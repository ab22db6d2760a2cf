import { kindsOfMessages } from "../../../src/cli/doctor-messages.ts";
import { commands } from "../../../src/commands/index.ts";
import { type Example, someShown } from "../example.ts";

/** What `doctor --messages` asks Slack about: one of each kind of block. */
export const examples: readonly Example[] = kindsOfMessages(commands).map(([called], n) => ({
  name: `blocks: ${called}`,
  make() {
    const [, rendered] = kindsOfMessages(commands)[n] ?? [];
    if (!rendered) throw new Error(`doctor renders no ${called}`);
    return someShown(rendered);
  },
}));
