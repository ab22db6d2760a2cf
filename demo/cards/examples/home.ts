import { commands } from "../../../src/commands/index.ts";
import type { HomePart } from "../../../src/features/home-part.ts";
import { homeParts } from "../../../src/features/home/render-home.ts";
import type { GatewayContext } from "../../../src/talk/gateway-context.ts";
import { md } from "../../../src/messages/markdown.ts";
import { homeView } from "../../../src/messages/views.ts";
import { type About, type Example } from "../example.ts";
import { olivia, readingOf, someOf } from "../reading.ts";
import { done, recordOf, sent, stageOf, stored } from "../requests.ts";

async function homeOf(about: About, isBusy: boolean) {
  const amir = { id: "U0AMIR", teamId: "T0OURS", name: "amir" };
  const requests = [
    stored(about, { record: recordOf(about, { id: "r-2waits4you", requester: amir }) }),
    stored(
      about,
      { record: recordOf(about, { id: "r-3runs5now1" }) },
      stageOf("accepted", sent(about)),
    ),
    done(about, { command: "vm restart" }),
  ];
  const reading = readingOf(about, commands, { requests: isBusy ? requests : [] });
  const gateway = someOf<GatewayContext>({
    ...reading,
    store: reading.journal,
    attestationNote: async () => undefined,
  } as unknown as Partial<GatewayContext>);
  const part: HomePart = async () => ({
    title: "Alerts",
    lines: [{ text: md`🔥 *HighCpu* on ${about.vm} since 3:07 AM`, button: undefined }],
  });
  return homeView(await homeParts(olivia(about), gateway, isBusy ? [part] : []));
}

export const examples: readonly Example[] = [
  { name: "the Home tab", make: (about) => homeOf(about, true) },
  { name: "the Home tab, without a request", make: (about) => homeOf(about, false) },
];
