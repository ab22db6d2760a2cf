/// <reference lib="dom" />

/**
 * A SharedWorker with the page's stream of news, for all its tabs: a browser opens only six
 * connections to one host, and a stream occupies one as long as it is open.
 */

/** What every tab is told. */
export type StreamNews =
  | { is: "around"; data: string }
  | { is: "changed" }
  | { is: "open" }
  | { is: "lost" };

const tabs = new Set<MessagePort>();
/** What a tab that opens later is told at once. */
const latest = new Map<StreamNews["is"], StreamNews>();

function tell(news: StreamNews): void {
  for (const tab of tabs) tab.postMessage(news);
}

const stream = new EventSource("/events");
stream.addEventListener("open", () => {
  latest.delete("lost");
  tell({ is: "open" });
});
stream.addEventListener("error", () => {
  latest.set("lost", { is: "lost" });
  tell({ is: "lost" });
});
stream.addEventListener("around", ({ data }: MessageEvent<string>) => {
  latest.set("around", { is: "around", data });
  tell({ is: "around", data });
});
stream.addEventListener("changed", () => tell({ is: "changed" }));

addEventListener("connect", (event) => {
  if (!(event instanceof MessageEvent)) return;
  const [tab] = event.ports;
  if (!tab) return;
  tabs.add(tab);
  for (const news of latest.values()) tab.postMessage(news);
  // Something may have changed between the tab's first look and now
  tab.postMessage({ is: "changed" });
});
