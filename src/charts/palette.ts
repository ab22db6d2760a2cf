import type { Tone } from "./chart.ts";

/**
 * One look for both of Slack's themes: a dark card of its own, because a picture can't know the reader's theme and a
 * white one hurts at night. Text and lines have a contrast of at least 4.5 against it; the two lines differ in lightness
 * and hue, so that colour-blind people can tell them apart.
 */
export const palette = {
  background: "#1a1d21",
  grid: "#33383e",
  axis: "#5a6068",
  quietText: "#abb1b8",
  text: "#f2f3f5",
  lines: ["#4cc2ff", "#ffb454", "#8ce99a", "#f78fb3", "#c4a7ff", "#ffe066"],
} as const;

export const toneColours: Readonly<Record<Tone, string>> = {
  good: "#3ecf8e",
  quiet: "#8b929a",
  busy: "#ffb454",
  bad: "#ff6b6b",
  other: "#c4a7ff",
};
