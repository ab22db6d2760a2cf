import { ConfigError, configExitCode } from "../config/config.ts";
import { printable } from "../text/terminal.ts";

/** What `load` returns. Where the configuration is wrong, the process ends and says how. */
export function orExit<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return exitConfig(error);
  }
}

export function exitConfig(error: ConfigError): never {
  process.stderr.write(`${printable(error.message)}\n`);
  return process.exit(configExitCode);
}
