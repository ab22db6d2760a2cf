import { within } from "../../deadline.ts";
import { renderChart } from "../../charts/charts.ts";
import type { Chart } from "../../charts/chart.ts";
import type { Log } from "../../log/log.ts";
import type { Message } from "../../messages/message.ts";
import { plain } from "../../messages/text.ts";
import { uploadUnseen } from "./upload.ts";
import type { Web } from "../web.ts";

/** A chart for a message, and the same in words. */
export interface Picture {
  chart: Chart;
  altText: string;
}

const sendWithinMs = 8_000;

/** Draws and uploads it privately. Resolves with its id, or undefined when that fails; never rejects. */
export async function sendPicture(
  { chart }: Picture,
  to: { web: Web; apiUrl: string; log: Log },
): Promise<string | undefined> {
  try {
    return await within(sendWithinMs, draw(chart), () => undefined);
  } catch (error) {
    to.log.warn("picture.not-drawn", { error });
    return undefined;
  }

  async function draw(what: Chart): Promise<string | undefined> {
    const png = await renderChart(what);
    const sent = await uploadUnseen({ ...to, png, name: "digest.png", title: what.title });
    if (sent.is === "stored") return sent.id;
    to.log.warn("picture.not-uploaded", { ...sent });
    return undefined;
  }
}

/** The picture goes above the footer. */
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
