import { defineFeature } from "../define-feature.ts";
import { freeze } from "./freeze.ts";
import { thaw } from "./thaw.ts";

/**
 * Lets people freeze all changes and allow them again. The core enforces the freeze, and can start
 * one itself.
 */
export const freezes = defineFeature({ name: "freeze", commands: [freeze, thaw] });
