/** A web page for a sandbox Slack, what is on its first screen, and what can be switched there. */
export type { Guide } from "./around.ts";
export type { GalleryCard } from "./gallery.ts";
export { type Page, startPage } from "./page.ts";
export {
  createPageWeather,
  killProcess,
  type Lever,
  type PageWeather,
  stopSlack,
  strikeCompute,
} from "./weather.ts";
