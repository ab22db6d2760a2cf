import { renderChart } from "../../charts/charts.ts";
import type { Chart } from "../../charts/chart.ts";
import { chartBlock, sparkline } from "../../charts/without-picture.ts";
import type { Log } from "../../log/log.ts";
import { message, type Message, section } from "../../messages/message.ts";
import { lines, Markdown, md, plain } from "../../messages/text.ts";
import { textAt, postMessage, type Web, type WebAnswer, whyOf } from "../web.ts";
import { uploadImage } from "./upload.ts";
import { closedChannel, goneThread } from "./post-once.ts";

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
  readyWithinMs?: number | undefined;
  /** Tests put a broken one here. */
  render?: (chart: Chart) => Promise<Buffer>;
}

/** How it was shown; `closed` means not at all: `instead` can be posted elsewhere. */
type ChartPosted =
  | { is: "picture" | "block" | "text"; channelId: string; ts: string }
  | { is: "unsure" }
  | { is: "closed"; why: string; instead: Message };

/** Nothing can be posted there, so no other form is tried. */
const hopeless = new Set([
  ...closedChannel,
  ...goneThread,
  "limited",
  "unreachable",
  "invalid_auth",
  "account_inactive",
  "token_revoked",
]);

/**
 * Shows a chart as a picture, else as Slack's own chart, else as text. What may have been shown is never shown again in
 * another form. Never throws.
 */
export async function postChart(spec: ChartSpec): Promise<ChartPosted> {
  const { web, log, chart, channelId } = spec;
  const instead = withSparkline(spec.message, chart);
  const png = await (spec.render ?? renderChart)(chart).catch((error: unknown) => {
    log.warn("chart.not-drawn", { error });
    return undefined;
  });
  if (png) {
    const name = `${fileName(chart.title)}.png`;
    const { text, blocks } = spec.message;
    const posted = await uploadImage({ ...spec, png, name, title: chart.title, text, blocks });
    if (posted.is === "posted")
      return { is: "picture", channelId: posted.channelId, ts: posted.ts };
    log.warn("chart.not-uploaded", { ...posted });
    if (posted.is === "unsure") return { is: "unsure" };
    if (posted.step === "post" && hopeless.has(posted.why))
      return { is: "closed", why: posted.why, instead };
  }
  const block = chart.kind === "lines" ? chartBlock(chart) : undefined;
  const { text } = spec.message;
  const native =
    block && (await postMessage(web, spec, { text, blocks: [...spec.message.blocks, block] }));
  const isOver = native && (native.ok || native.kind !== "refused" || hopeless.has(native.error));
  if (isOver) return outcomeOf(native, "block");
  return outcomeOf(await postMessage(web, spec, instead), "text");

  function outcomeOf(answer: WebAnswer, is: "block" | "text"): ChartPosted {
    if (answer.ok) {
      const channel = textAt(answer.data, "channel") || channelId;
      return { is, channelId: channel, ts: textAt(answer.data, "ts") };
    }
    if (answer.kind === "lost") return { is: "unsure" };
    const why = whyOf(answer);
    log.warn("chart.not-posted", { why });
    return { is: "closed", why, instead };
  }
}

/** The message with its chart as text. */
export function withSparkline(above: Message, chart: Chart): Message {
  const rows =
    chart.kind === "lines"
      ? chart.series.map(({ name, points }) => {
          const bars = sparkline(points);
          return bars ? md`${bars} ${name}` : md`${name}: no samples`;
        })
      : [md`${chart.counts.map(({ label, count }) => `${count} ${label}`).join(" · ") || "None"}`];
  return message(new Markdown(above.text), above.blocks, section(lines(...rows)));
}

function fileName(title: string): string {
  return (
    plain(title, 60)
      .replaceAll(/[^\p{L}\p{N}._-]+/gu, "-")
      .replaceAll(/^[-.]+|[-.]+$/g, "") || "chart"
  );
}
