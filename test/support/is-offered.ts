import { commands } from "../../src/features/index.ts";

/**
 * True if Gatehouse has this command. A test that crosses features asks before it uses one of
 * another feature, so that it holds after that feature was removed for good.
 */
export const isOffered = (name: string): boolean =>
  commands.some((command) => command.name === name);
