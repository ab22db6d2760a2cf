import type { Block } from "@slack/types";
import { renderChart, renderCounts } from "../charts/charts.ts";
import type { Chart } from "../charts/chart.ts";
import { chartBlock } from "../charts/chart-block.ts";
import { tidy } from "../charts/points.ts";
import { sparkline } from "../charts/sparkline.ts";
import type { Log } from "../log.ts";
import { message, type Message, section } from "../messages/message.ts";
import { lines, Markdown, md, plain } from "../messages/text.ts";
import { textAt } from "./payload.ts";
import { uploadImage } from "./upload.ts";
import type { Web, WebAnswer } from "./web.ts";

export interface ChartSpec {
  web: Web;
  apiUrl: string;
  log: Log;
  channelId: string;
  threadTs?: string | undefined;
  /** Shown above the chart. */
  message: Message;
  chart: Chart;
  /** The chart in words. */
  altText: string;
  readyWithinMs?: number;
  /** Tests put a broken one here. */
  render?: (chart: Chart) => Promise<Buffer>;
}

/** How it came to be shown; `closed` means not at all: `instead` can be said elsewhere, such as to the asker alone. */
export type ChartPosted =
  | { is: "picture" | "block" | "text"; channelId: string; ts: string }
  | { is: "unsure" }
  | { is: "closed"; why: string; instead: Message };

/** No chart of any kind can be posted there, so no other kind is tried. */
const hopeless = new Set([
  "not_in_channel",
  "channel_not_found",
  "is_archived",
  "restricted_action",
  "restricted_action_read_only_channel",
  "restricted_action_thread_only_channel",
  "no_permission",
  "thread_not_found",
  "cannot_reply_to_message",
  "limited",
  "unreachable",
  "invalid_auth",
  "account_inactive",
  "token_revoked",
]);

/**
 * Shows a chart as well as Slack lets us: as a picture, else as Slack's own chart, else as text. What may have been shown
 * is never shown a second time in another way. Never throws.
 */
export async function postChart(spec: ChartSpec): Promise<ChartPosted> {
  const { web, log, chart, altText, channelId, threadTs } = spec;
  const instead = withSparkline(spec.message, chart);
  const png = await (spec.render ?? render)(chart).catch((error: unknown) => {
    log.warn("chart.not-drawn", { error });
    return undefined;
  });
  if (png) {
    const posted = await uploadImage({
      web,
      apiUrl: spec.apiUrl,
      channelId,
      threadTs,
      png,
      name: `${fileName(chart.title)}.png`,
      title: chart.title,
      altText,
      text: spec.message.text,
      blocks: spec.message.blocks,
      ...(spec.readyWithinMs === undefined ? {} : { readyWithinMs: spec.readyWithinMs }),
    });
    if (posted.is === "posted")
      return { is: "picture", channelId: posted.channelId, ts: posted.ts };
    log.warn("chart.not-uploaded", { ...posted });
    if (posted.is === "unsure") return { is: "unsure" };
    if (posted.step === "post" && hopeless.has(posted.why))
      return { is: "closed", why: posted.why, instead };
  }
  const block = chart.kind === "lines" ? chartBlock(chart) : undefined;
  const native = block && (await post([...spec.message.blocks, block], spec.message.text));
  const isOver = native && (native.ok || native.kind !== "refused" || hopeless.has(native.error));
  if (isOver) return outcomeOf(native, "block");
  return outcomeOf(await post(instead.blocks, instead.text), "text");

  function post(blocks: readonly Block[], text: string): Promise<WebAnswer> {
    return web.call("chat.postMessage", {
      channel: channelId,
      ...(threadTs === undefined ? {} : { thread_ts: threadTs }),
      text,
      blocks,
      unfurl_links: false,
      unfurl_media: false,
    });
  }

  function outcomeOf(answer: WebAnswer, is: "block" | "text"): ChartPosted {
    if (answer.ok) {
      const channel = textAt(answer.data, "channel") || channelId;
      return { is, channelId: channel, ts: textAt(answer.data, "ts") };
    }
    if (answer.kind === "lost") return { is: "unsure" };
    const why = answer.kind === "refused" ? answer.error : answer.kind;
    log.warn("chart.not-posted", { why });
    return { is: "closed", why, instead };
  }
}

function render(chart: Chart): Promise<Buffer> {
  return chart.kind === "lines" ? renderChart(chart) : renderCounts(chart);
}

/** The message with its chart as text: a row of bars for each line, a number for each kind. */
export function withSparkline(above: Message, chart: Chart): Message {
  const rows =
    chart.kind === "lines"
      ? chart.series.map(({ name, points }) => {
          const bars = sparkline(tidy(points).map(({ value }) => value));
          return bars ? md`${bars} ${name}` : md`${name}: no samples`;
        })
      : [md`${chart.counts.map(({ label, count }) => `${count} ${label}`).join(" · ") || "None"}`];
  return message(new Markdown(above.text), above.blocks, section(lines(...rows)));
}

/** The title as a file name: what is unusual in one becomes a dash. */
function fileName(title: string): string {
  return (
    plain(title, 60)
      .replaceAll(/[^\p{L}\p{N}._-]+/gu, "-")
      .replaceAll(/^[-.]+|[-.]+$/g, "") || "chart"
  );
}
