import { homeTabOf } from "../../talk/service-keys.ts";
import { defineFeature } from "../define-feature.ts";
import { createHomeTab } from "./home-tab.ts";

/**
 * Shows the Home tab: what waits for a person, what runs, what has problems, and the sections of
 * features.
 */
export const home = defineFeature({
  name: "home",
  showsHome: true,
  start: () => ({ provides: [homeTabOf.providedBy(createHomeTab())] }),
});
