import { stretchDeadlines } from "../../src/deadline.ts";

/**
 * Vitest's setup of each file: what Gatehouse gives others a second for takes at most half a minute, so that no machine is late by being
 * slow. A file that is about such deadlines calls `stretchDeadlines(1)`.
 */
stretchDeadlines(30);
