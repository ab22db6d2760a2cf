import { defineFeature } from "../define-feature.ts";
import { createHomeTab } from "./home-tab.ts";

/** The Home tab: what waits for a person, what runs, what is in trouble, and what features have to show. */
export const home = defineFeature({
  name: "home",
  showsHome: true,
  needs: ["running"],
  start: (on) => ({
    homeTab: createHomeTab(() => on.running().flatMap((feature) => feature.home ?? [])),
  }),
});
