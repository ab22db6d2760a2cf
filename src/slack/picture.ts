import { renderChart, renderCounts } from "../charts/charts.ts";
import type { Chart } from "../charts/chart.ts";
import type { Log } from "../log.ts";
import type { Message } from "../messages/message.ts";
import { plain } from "../messages/text.ts";
import { uploadUnseen } from "./upload.ts";
import type { Web } from "./web.ts";

/** A chart that goes with a message, and the same in words. */
export interface Picture {
  chart: Chart;
  altText: string;
}

/** Drawing and sending take a second; what takes longer isn't worth waiting for. */
const withinMs = 8_000;

/** Draws it and hands it to Slack, where nobody sees it yet. Its id, or undefined: then the message goes without. Never rejects. */
export async function sendPicture(
  { chart }: Picture,
  to: { web: Web; apiUrl: string; log: Log },
): Promise<string | undefined> {
  const { promise: tooLate, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), withinMs);
  try {
    return await Promise.race([draw(chart), tooLate]);
  } catch (error) {
    to.log.warn("picture.not-drawn", { error });
    return undefined;
  } finally {
    clearTimeout(timer);
  }

  async function draw(what: Chart): Promise<string | undefined> {
    const png = what.kind === "lines" ? await renderChart(what) : await renderCounts(what);
    const sent = await uploadUnseen({ ...to, png, name: "digest.png", title: what.title });
    if (sent.is === "stored") return sent.id;
    to.log.warn("picture.not-uploaded", { ...sent });
    return undefined;
  }
}

/** The message with the picture below its words, the footer last. */
export function withPicture(message: Message, picture: Picture, fileId: string): Message {
  const image = {
    type: "image" as const,
    slack_file: { id: fileId },
    alt_text: plain(picture.altText, 2000) || "picture",
  };
  return {
    ...message,
    blocks: [...message.blocks.slice(0, -1), image, ...message.blocks.slice(-1)],
  };
}
