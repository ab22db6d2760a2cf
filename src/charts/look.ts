import { fileURLToPath } from "node:url";
import { GlobalFonts } from "@napi-rs/canvas";
import * as lib from "chart.js";

/**
 * Dark in both of Slack's themes, because a picture can't know the reader's theme and white glares at night. Contrast is
 * at least 4.5; the first two lines differ in lightness and hue, for color-blind people.
 */
export const palette = {
  background: "#1a1d21",
  grid: "#33383e",
  axis: "#5a6068",
  quietText: "#abb1b8",
  text: "#f2f3f5",
  lines: ["#4cc2ff", "#ffb454", "#8ce99a", "#f78fb3", "#c4a7ff", "#ffe066"],
} as const;

const statusColors: Readonly<Record<string, string>> = {
  RUNNING: "#3ecf8e",
  STOPPED: "#8b929a",
  CREATING: "#ffb454",
  REBOOTING: "#ffb454",
  DELETING: "#ffb454",
  ERROR: "#ff6b6b",
};
export const colorOf = (status: string) => statusColors[status] ?? "#c4a7ff";

// Without installed fonts, text would silently be missing, so the font is bundled
export const family = "Gatehouse Inter";
for (const path of ["500Medium/Inter_500Medium.ttf", "700Bold/Inter_700Bold.ttf"]) {
  const file = fileURLToPath(import.meta.resolve(`@expo-google-fonts/inter/${path}`));
  if (!GlobalFonts.registerFromPath(file, family)) throw new Error(`can't load the font ${path}`);
}

const { defaults } = lib;
lib.Chart.register(lib.LineController, lib.LineElement, lib.PointElement, lib.LinearScale);
lib.Chart.register(lib.BarController, lib.BarElement, lib.CategoryScale);
lib.Chart.register(lib.Title, lib.SubTitle, lib.Legend);
defaults.set({
  animation: false,
  responsive: false,
  events: [],
  // Laid out 600 wide and drawn twice as large, to be sharp on phones
  devicePixelRatio: 2,
  color: palette.quietText,
  font: { family, size: 17, weight: 500 },
  layout: { padding: { left: 20, right: 84, top: 16, bottom: 12 } },
});
defaults.set("elements.line", { borderCapStyle: "round", borderJoinStyle: "round" });
defaults.set("elements.point", { radius: 0 });
defaults.set("scale", { border: { display: false }, ticks: { padding: 8, maxRotation: 0 } });
defaults.set("plugins.title", { display: true, align: "start", color: palette.text, padding: 0 });
defaults.set("plugins.title.font", { size: 22, weight: 700 });
defaults.set("plugins.subtitle", { display: true, align: "start", padding: { top: 4, bottom: 8 } });
defaults.set("plugins.legend", { align: "start" });
defaults.set("plugins.legend.labels", {
  color: palette.text,
  usePointStyle: true,
  boxHeight: 7,
  padding: 14,
});
