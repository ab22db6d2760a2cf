import { ConfigError, configExitCode } from "../config/config-error.ts";
import { printable } from "../text/terminal.ts";

/**
 * Returns what `load` returns. When the configuration is wrong, prints why and ends the process.
 */
export function orExit<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    return exitConfigOn(error);
  }
}

/** Ends the process when this error says that the configuration is wrong, and else throws it. */
export function exitConfigOn(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  return exitConfig(error);
}

export function exitConfig(error: ConfigError): never {
  process.stderr.write(`${printable(error.message)}\n`);
  return process.exit(configExitCode);
}
