import { defineFeature } from "../define-feature.ts";
import { freeze } from "./freeze.ts";
import { thaw } from "./thaw.ts";

/** People stop all changes, and allow them again. That Gatehouse freezes by itself, and what a freeze stops, is the core's. */
export const freezes = defineFeature({ name: "freeze", commands: [freeze, thaw] });
