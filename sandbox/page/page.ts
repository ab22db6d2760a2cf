import { createServer } from "node:http";
import { listen } from "../listen.ts";
import type { Workspace } from "../slack/state/workspace.ts";
import type { Buzz, Guide } from "./around.ts";
import { answer, type PageParts } from "./routes.ts";
import type { MakeCards } from "./gallery.ts";
import type { PageWeather } from "./weather.ts";

const lookEveryMs = 250;
const mostBuzzes = 20;

export interface Page extends AsyncDisposable {
  /** `http://127.0.0.1:<port>/`. Add `#as=amir&channel=ops` to begin as somebody, somewhere. */
  url: string;
  close(): Promise<void>;
}

/** Serves the workspace as a web page, on this machine only. Whoever can open it can act as any of its people. */
export async function startPage(options: {
  slack: PageParts["slack"];
  /** Whom to be and what to try first. */
  guide?: Guide;
  /** What can go wrong at a press. */
  weather?: PageWeather;
  /** What the app can say, for the gallery at `/cards`. */
  cards?: MakeCards;
  /** 0, the default: any free one. */
  port?: number;
}): Promise<Page> {
  const { slack, guide, weather, cards } = options;
  const parts: PageParts = {
    slack,
    weather,
    cards,
    listeners: new Set(),
    around: () => ({
      ...(guide ? { guide } : {}),
      ...(weather ? { weather: weather.now() } : {}),
      phones: phonesOf(slack.workspace),
    }),
  };
  const server = createServer((request, response) => {
    answer(parts, request, response).catch((error: unknown) => {
      console.error("sandbox page:", error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  const listening = await listen(server, options.port ?? 0);
  const tell = (what: "workspace" | "around") => {
    for (const listener of parts.listeners) listener(what);
  };
  const stop = slack.onChange(() => tell("workspace"));
  // The service has no events: whoever looks at its VMs looks again
  const looking = weather ? setInterval(() => tell("around"), lookEveryMs) : undefined;
  const close = async () => {
    clearInterval(looking);
    stop();
    await listening.close();
  };
  return { url: `${listening.url}/`, close, [Symbol.asyncDispose]: close };
}

function phonesOf({ notifications }: Workspace): Buzz[] {
  return [...notifications]
    .flatMap(([userId, list]) =>
      list.map(({ channelId, ts, at, text }) => ({ userId, channelId, ts, at, text })),
    )
    .toSorted((one, other) => one.at - other.at)
    .slice(-mostBuzzes);
}
